#include "props/replay/rank_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "props/replay/collective_rules.h"
#include "props/replay/lost_kinds.h"
#include "props/replay/moment.h"
#include "sim/trace/point_to_point.h"

namespace zeroproof {
namespace {

constexpr std::size_t kExceptionMax = 240;  // characters

// What the recorder's guardian writes into the file of a process that died
// (docs/reference/recorder.md).
constexpr std::string_view kKilled = "the process ended without closing its recording";

bool is_decision(std::string_view label) {
  return label.starts_with("overflow:") || label.starts_with("loss_scale:") ||
         label == "step_applied" || label == "step_skipped";
}

std::string open_words(const OpenNumbers::Item& item, std::string_view group,
                       const NameTable& names) {
  std::string text =
      fmt::format("{} number {} of group {}", names.text(item.op), item.number, group);
  if (item.bytes >= 0) text += fmt::format(" ({} bytes)", item.bytes);
  return text;
}

}  // namespace

std::string_view GradientWindow::property_number() const {
  if (backwards <= 1) return "P26";
  if (has_later_step) return "P27";
  if (forwards <= 1) return "P28";
  return has_later_forward ? "P30" : "P29";
}

void RankDigest::declare(const ParamRecord& param, NameTable& names) {
  const NameId name = names.intern(param.name);
  purposes_.declare_param(name);
  const std::uint64_t hash = hash_of(name, names);
  std::uint64_t shape = chained(hash, text_hash(param.dtype));
  for (const std::int64_t size : param.shape)
    shape = chained(shape, static_cast<std::uint64_t>(size));
  declared_.push_back({name, hash, shape, param.requires_grad});
}

void RankDigest::add_tensor(std::string_view role, std::string_view name,
                            const std::vector<double>* values) {
  if (has_stepped_) return;
  if (role == "param") {
    for (const char byte : name)
      parameters_hash_ = chained(parameters_hash_, static_cast<unsigned char>(byte));
    if (values != nullptr)
      for (const double value : *values)
        parameters_hash_ = chained(parameters_hash_, std::bit_cast<std::uint64_t>(value));
  }
  if (role != "grad") return;
  const std::size_t size = values == nullptr ? 0 : values->size();
  if (values_kept_ + size > kValuesMax) {
    is_over_cap_ = true;
    return;
  }
  values_kept_ += size;
  Gradient gradient{std::string(name), std::nullopt, property_number(), last_lc_};
  if (values != nullptr) gradient.values = *values;
  gradients_.push_back(std::move(gradient));
}

void RankDigest::drop_gradients() {
  is_over_cap_ = is_over_cap_ || !gradients_.empty();
  gradients_ = {};
  values_kept_ = 0;
}

void RankDigest::on_event(const HookEvent& event, const NameTable& names) {
  last_lc_ = event.lc;
  switch (event.kind) {
    case EventKind::coll_issue:
      return on_issue(event, names);
    case EventKind::coll_complete:
      return on_complete(event, names);
    case EventKind::param_post_acc:
      return hooks_.add(event.lc, hash_of(event.param, names));
    case EventKind::gt_begin:
    case EventKind::module_fwd_pre:
      return confirm_completions();
    case EventKind::opt_step:
      confirm_completions();
      return steps_.add(event.lc, collective_count_ + 1);
    case EventKind::opt_zero_grad:
      return windows_.clear();
    case EventKind::exc:
      return on_exception(event, names);
    case EventKind::mark:
      on_mark(event, names);
      break;
    case EventKind::zparam_gather_begin:
      gathers_.add(event.lc, purpose_hash({event.params, true}, names));
      break;
    case EventKind::engine_call:
    case EventKind::engine_return:
      follow_window(event, names.text(event.name));
      break;
    default:
      break;
  }
  purposes_.on_event(event, names);
}

void RankDigest::on_issue(const HookEvent& event, const NameTable& names) {
  const std::string_view op = names.text(event.name);
  if (is_point_to_point(op)) return on_message(event, names);
  ++collective_count_;
  const CollectiveRule& rule = collective_rule(op);
  confirm_completions();
  CollectiveLane& lane = collectives_[collective_lane(event.group, names)];
  std::uint64_t hash = hash_of(event.name, names);
  if (rule.has_same_size) hash = chained(hash, static_cast<std::uint64_t>(event.bytes));
  if (rule.has_root) hash = chained(hash, static_cast<std::uint64_t>(event.root));
  lane.operations.add(event.lc, hash);
  const CollectivePurpose purpose = purposes_.take(event, names);
  lane.purposes = chained(lane.purposes, purpose.is_certain ? purpose_hash(purpose, names) : 0);
  if (lane.first_number < 0) lane.first_number = event.index;
  lane.open.add({event.index, event.lc, event.name, event.bytes});
}

void RankDigest::on_message(const HookEvent& event, const NameTable& names) {
  ++message_count_;
  has_peers_ = has_peers_ || event.peer >= 0;
  const bool is_send = names.text(event.name) == "send";
  has_any_source_ = has_any_source_ || (!is_send && event.peer < 0);
  MessageLane* lane = message_lane(event, names);
  if (lane == nullptr) return;
  ++lane->count;
  lane->sizes += chained(1, static_cast<std::uint64_t>(event.bytes));
  lane->open.add({event.index, event.lc, event.name, event.bytes});
}

void RankDigest::on_complete(const HookEvent& event, const NameTable& names) {
  const std::string_view op = names.text(event.name);
  if (is_point_to_point(op)) {  // completions do not name the peer: the number finds the message
    for (MessageLane& lane : messages_)
      if (lane.open.contains(event.index) && lane.is_send == (op == "send"))
        return lane.open.complete(event.index);
    return;
  }
  unconfirmed_.push_back({collective_lane(event.group, names), event.index,
                          !has_early_completions_ && collective_rule(op).joins_all_ranks});
}

void RankDigest::confirm_completions() {
  for (const Completion& one : unconfirmed_) {
    CollectiveLane& lane = collectives_[one.lane];
    lane.open.complete(one.number);
    if (one.joins_all_ranks) lane.joined = std::max(lane.joined, one.number);
  }
  unconfirmed_.clear();
}

void RankDigest::on_mark(const HookEvent& event, const NameTable& names) {
  const std::string_view label = names.text(event.name);
  if (is_decision(label)) decisions_.add(event.lc, hash_of(event.name, names), label);
  if (label.starts_with("requires_grad:"))
    parameters_.trained += chained(hash_of(event.param, names), hash_of(event.name, names));
}

void RankDigest::on_exception(const HookEvent& event, const NameTable& names) {
  std::string text = fmt::format("{}: {}", names.text(event.name), names.text(event.message));
  if (text.size() > kExceptionMax) text.resize(kExceptionMax);
  unconfirmed_.clear();
  last_exception_ = {event.lc, std::move(text), event.is_uncaught};
}

std::size_t RankDigest::collective_lane(NameId group, const NameTable& names) {
  const std::size_t at = group.is_none() ? 0 : static_cast<std::size_t>(group.value) + 1;
  if (at >= lane_of_group_.size()) lane_of_group_.resize(at + 1, -1);
  std::int32_t& index = lane_of_group_[at];
  if (index < 0) {
    index = static_cast<std::int32_t>(collectives_.size());
    collectives_.push_back({.group = std::string(names.text(group))});
  }
  return static_cast<std::size_t>(index);
}

MessageLane* RankDigest::message_lane(const HookEvent& event, const NameTable& names) {
  const std::string_view group = names.text(event.group);
  const bool is_send = names.text(event.name) == "send";
  for (MessageLane& lane : messages_)
    if (lane.peer == event.peer && lane.is_send == is_send && lane.group == group) return &lane;
  if (messages_.size() == kMessageLanesMax) {
    has_too_many_messages_ = true;
    return nullptr;
  }
  messages_.push_back({.group = std::string(group), .peer = event.peer, .is_send = is_send});
  return &messages_.back();
}

std::uint64_t RankDigest::hash_of(NameId name, const NameTable& names) {
  if (name.is_none()) return 0;
  const auto at = static_cast<std::size_t>(name.value);
  if (at >= name_hashes_.size()) name_hashes_.resize(names.size());
  if (name_hashes_[at] == 0) name_hashes_[at] = text_hash(names.text(name));
  return name_hashes_[at];
}

// Stage 3 sorts a bucket before it is reduced, so that its order of hooks has no meaning.
std::uint64_t RankDigest::purpose_hash(const CollectivePurpose& purpose, const NameTable& names) {
  const bool is_sorted_later = stage_ == 3 && purpose.is_bucket;
  std::uint64_t hash = purpose.params.size();
  for (const NameId param : purpose.params)
    hash = is_sorted_later ? hash + hash_of(param, names) : chained(hash, hash_of(param, names));
  return hash;
}

void RankDigest::finish(bool is_complete, const NameTable& names, const JobFacts& job) {
  is_complete_ = is_complete;
  confirm_completions();
  sum_parameters(names, job);
  take_lost(job.notes);
  take_wrappers(job);
  describe_lanes(names, job);
  name_hashes_ = {};
  lane_of_group_ = {};
  purposes_ = {};
}

void RankDigest::sum_parameters(const NameTable& names, const JobFacts& job) {
  std::set<std::string_view> ignored;
  for (const auto& [model, wrapper] : job.wrappers)
    ignored.insert(wrapper.ignored.begin(), wrapper.ignored.end());
  for (const Declared& one : declared_) {
    if (ignored.contains(names.text(one.name))) continue;
    parameters_.count += 1;
    parameters_.names += one.hash;
    parameters_.trained += chained(one.hash, one.is_trained ? 1 : 2);
    parameters_.shapes += one.shape;
    parameters_.in_order = chained(parameters_.in_order, one.hash);
  }
  declared_ = {};
}

void RankDigest::take_lost(const std::vector<NoteRecord>& notes) {
  is_killed_ = std::any_of(notes.begin(), notes.end(),
                           [](const NoteRecord& note) { return note.text.starts_with(kKilled); });
  const LostKinds lost(notes);
  lost_ = {.issues = lost.reason({"coll.issue"}),
           .completions = lost.reason({"coll.complete"}),
           .hooks = lost.reason({"param.post_acc"}),
           .steps = lost.reason({"opt.step"}),
           .parameters = lost.reason({"zparam.gather_begin", "zparam.partition", "bucket.flush"})};
}

void RankDigest::take_wrappers(const JobFacts& job) {
  has_wrapper_ = !job.wrappers.empty();
  if (!has_wrapper_) return;
  const std::string& group = job.wrappers.begin()->second.group;
  const bool is_one = std::all_of(job.wrappers.begin(), job.wrappers.end(),
                                  [&](const auto& entry) { return entry.second.group == group; });
  if (is_one) data_group_ = group;
}

void RankDigest::describe_lanes(const NameTable& names, const JobFacts& job) {
  for (CollectiveLane& lane : collectives_) {
    const auto group = job.groups.find(lane.group);
    if (group != job.groups.end() && group->second.ranks) {
      lane.members = std::make_shared<const std::vector<std::int32_t>>(*group->second.ranks);
      lane.description = group->second.description;
    }
    if (const OpenNumbers::Item* first = lane.open.first())
      lane.open_text = open_words(*first, lane.group, names);
  }
  for (MessageLane& lane : messages_)
    if (const OpenNumbers::Item* first = lane.open.first())
      lane.open_text = open_words(*first, lane.group, names);
}

void RankDigest::share_members(MemberTable& table) {
  for (CollectiveLane& lane : collectives_)
    if (lane.members) lane.members = *table.insert(lane.members).first;
}

std::size_t RankDigest::memory_bytes() const {
  std::size_t bytes = sizeof(*this) + gathers_.memory_bytes() + decisions_.memory_bytes() +
                      hooks_.memory_bytes() + steps_.memory_bytes() +
                      messages_.capacity() * sizeof(MessageLane) +
                      collectives_.capacity() * sizeof(CollectiveLane);
  for (const CollectiveLane& lane : collectives_)
    bytes += lane.operations.memory_bytes() + lane.open.memory_bytes() + lane.open_text.capacity();
  for (const MessageLane& lane : messages_)
    bytes += lane.open.memory_bytes() + lane.open_text.capacity();
  return bytes;
}

void RankDigest::follow_window(const HookEvent& event, std::string_view name) {
  const bool is_call = event.kind == EventKind::engine_call;
  if (!is_call || event.transforms > 0) {
    if (!is_call && name == "engine.step")
      for (auto& [engine, window] : windows_)
        window.has_later_step = window.has_later_step || window.backwards > 0;
    return;
  }
  if (name == "engine.take_model_step") has_stepped_ = true;
  if (name == "engine.take_model_step" || name.ends_with(".zero_grad")) {
    if (event.engine.is_none())
      windows_.clear();
    else
      windows_.erase(event.engine);
  }
  if (name == "engine.forward" && event.graph_task.is_none()) {
    GradientWindow& window = windows_[event.engine];
    window.forwards += 1;
    window.has_later_forward = window.has_later_forward || window.backwards > 0;
  }
  if (name == "engine.backward_epilogue") windows_[event.engine].backwards += 1;
}

// A gradient record does not say which engine it is of: the most particular window counts.
std::string_view RankDigest::property_number() const {
  std::string_view number = "P26";
  for (const auto& [engine, window] : windows_) number = std::max(number, window.property_number());
  return number;
}

}  // namespace zeroproof
