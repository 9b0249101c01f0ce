#include "props/replay/rank_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "props/replay/collective_purpose.h"
#include "props/replay/collective_rules.h"
#include "props/replay/moment.h"
#include "props/report/event_words.h"
#include "sim/trace/point_to_point.h"

namespace zeroproof {
namespace {

constexpr std::size_t kNamesShown = 4;
constexpr std::size_t kRecentMax = 8;
constexpr std::int64_t kNumberBytesMax = 8;
constexpr std::string_view kGradientHook = "gradient hook";

std::int64_t element_bytes(std::string_view dtype) {
  if (dtype == "float64" || dtype == "fp64" || dtype == "int64") return 8;
  if (dtype == "bfloat16" || dtype == "float16" || dtype == "bf16" || dtype == "fp16") return 2;
  return 4;
}

}  // namespace

std::string LaneItem::words() const {
  std::string text = op;
  if (bytes >= 0) text += fmt::format(" of {} bytes", bytes);
  if (root >= 0) text += fmt::format(" with root {}", root);
  if (!parameter.empty()) text += fmt::format(" for {}", parameter);
  return text;
}

struct RankCursor::State {
  RankLane lane;
  NameTable names;
  std::optional<TraceReader> reader;
  PurposeTracker purposes;
  std::map<std::int64_t, std::vector<NameId>> sizes;       // parameters by their bytes
  std::map<std::int32_t, std::vector<NameId>> open_hooks;  // by thread: parameters of grad_hook
  std::uint64_t collectives = 0;
  std::uint64_t events = 0;
  std::array<HookEvent, kRecentMax> recent;  // the last events, by number
  bool is_at_end = false;

  void declare(const ParamRecord& param) {
    const NameId name = names.intern(param.name);
    purposes.declare_param(name);
    std::int64_t bytes = element_bytes(param.dtype);
    for (const std::int64_t size : param.shape) bytes *= size;
    sizes[bytes].push_back(name);
  }

  template <class Other>
  void declare(const Other&) {}

  // The item that the event is, if it is one of the lane.
  std::optional<LaneItem> take(const HookEvent& event) {
    const bool is_issue = event.kind == EventKind::coll_issue;
    const bool is_message = is_issue && is_point_to_point(names.text(event.name));
    CollectivePurpose purpose;
    if (is_issue && !is_message) purpose = purposes.take(event, names);
    follow(event);
    const std::uint64_t before = collectives;
    if (is_issue && !is_message) ++collectives;
    if (!is_of_lane(event, is_issue, is_message)) return std::nullopt;
    LaneItem item = is_issue ? issued(event, purpose) : other(event);
    item.collectives = before;
    return item;
  }

  bool is_of_lane(const HookEvent& event, bool is_issue, bool is_message) const {
    switch (lane.kind) {
      case RankLane::Kind::collectives:
        return is_issue && !is_message && names.text(event.group) == lane.group;
      case RankLane::Kind::messages:
        return is_message && names.text(event.group) == lane.group && event.peer == lane.peer &&
               (names.text(event.name) == "send") == lane.is_send;
      case RankLane::Kind::gradient_hooks:
        return event.kind == EventKind::param_post_acc;
      case RankLane::Kind::steps:
        return event.kind == EventKind::opt_step;
    }
    return false;
  }

  void follow(const HookEvent& event) {
    if (event.kind == EventKind::engine_call || event.kind == EventKind::engine_return)
      follow_hook(event);
    purposes.on_event(event, names);
  }

  void follow_hook(const HookEvent& event) {
    if (names.text(event.name) != "grad_hook") return;
    auto& open = open_hooks[event.thread];
    if (event.kind == EventKind::engine_call)
      open.push_back(event.param);
    else if (!open.empty())
      open.pop_back();
  }

  LaneItem issued(const HookEvent& event, const CollectivePurpose& purpose) {
    LaneItem out{.op = std::string(names.text(event.name)),
                 .group = std::string(names.text(event.group)),
                 .number = event.index,
                 .bytes = event.bytes,
                 .root = event.root,
                 .moment = moment_of(event, names)};
    std::vector<std::string> words;
    for (const NameId param : purpose.params) words.emplace_back(names.text(param));
    out.parameter = purpose.params.empty() ? by_size(event.bytes) : listed(words, kNamesShown);
    if (purpose.is_certain) out.parameters = std::move(words);
    if (lane.sorts_buckets && purpose.is_bucket)
      std::sort(out.parameters.begin(), out.parameters.end());
    out.place = place_of(event);
    if (!out.parameter.empty()) out.moment.text += " for " + out.parameter;
    return out;
  }

  LaneItem other(const HookEvent& event) const {
    LaneItem out{.moment = moment_of(event, names)};
    out.op = lane.kind == RankLane::Kind::steps ? kOptimizerStep : kGradientHook;
    if (!event.param.is_none()) {
      out.parameter = names.text(event.param);
      out.parameters = {out.parameter};
    }
    return out;
  }

  // The only parameter of that size. One number is rather a loss or a count than a parameter.
  std::string by_size(std::int64_t bytes) const {
    if (bytes <= kNumberBytesMax) return {};
    const auto fitting = sizes.find(bytes);
    const bool is_unique = fitting != sizes.end() && fitting->second.size() == 1;
    return is_unique ? std::string(names.text(fitting->second.front())) : std::string();
  }

  std::string place_of(const HookEvent& event) {
    const auto& hook = open_hooks[event.thread];
    if (!hook.empty() && !hook.back().is_none())
      return fmt::format("in the hook of {}", names.text(hook.back()));
    if (!event.graph_task.is_none()) return fmt::format("in graph task {}", event.graph_task.value);
    return {};
  }

  // Words are made for the one moment that is asked for: they cost more than reading an event.
  DiagnosisMoment last() const {
    DiagnosisMoment moment;
    for (std::uint64_t back = 1; back <= std::min<std::uint64_t>(events, kRecentMax); ++back) {
      const HookEvent& event = recent[(events - back) % kRecentMax];
      if (back == 1) moment = moment_of(event, names);
      if (event.kind == EventKind::mark || !event_words(event, names).is_detail)
        return moment_of(event, names);
    }
    return moment;
  }
};

RankCursor::RankCursor(std::unique_ptr<State> state) : state_(std::move(state)) {}
RankCursor::RankCursor(RankCursor&&) noexcept = default;
RankCursor::~RankCursor() = default;

Result<RankCursor> RankCursor::open(const std::string& path, RankLane lane) {
  auto state = std::make_unique<State>();
  auto reader = TraceReader::open(path, state->names);
  if (!reader) return tl::unexpected(reader.error());
  state->lane = std::move(lane);
  state->reader.emplace(std::move(*reader));
  return RankCursor(std::move(state));
}

std::optional<LaneItem> RankCursor::next() {
  while (!state_->is_at_end) {
    const auto record = state_->reader->next();
    if (!record || *record == nullptr) break;
    const HookEvent* event = (*record)->event();
    if (event == nullptr) {
      std::visit([&](const auto& body) { state_->declare(body); }, (*record)->body);
      continue;
    }
    state_->recent[state_->events++ % kRecentMax] = *event;
    if (auto item = state_->take(*event)) return item;
  }
  state_->is_at_end = true;
  return std::nullopt;
}

DiagnosisMoment RankCursor::last() const {
  return state_->last();
}

std::uint64_t RankCursor::events() const {
  return state_->events;
}

}  // namespace zeroproof
