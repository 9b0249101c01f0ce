#include "props/replay/reduction_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "props/replay/moment.h"

namespace zeroproof {
namespace {

// Communication in 8 bits carries a quarter of float32.
constexpr std::int64_t kCompressionMax = 4;

// Operations by which gradients of other ranks can come back.
constexpr std::array<std::string_view, 3> kCarrying = {"reduce", "gather", "to_all"};

bool is_carrying(std::string_view op) {
  return std::any_of(kCarrying.begin(), kCarrying.end(), [&](std::string_view word) {
    return op.find(word) != std::string_view::npos;
  });
}

// Added to the model, or made trainable, after the recording began.
bool is_new(const JobFacts& facts, const std::set<NameId>& unfrozen, std::string_view name,
            NameId param) {
  const ParamFact* fact = facts.find(name);
  return unfrozen.contains(param) || (fact != nullptr && (fact->is_late || !fact->requires_grad));
}

// What the recorder calls the wrapper of a model.
bool is_wrapper_name(std::string_view module) {
  constexpr std::string_view kDdp = "ddp";
  if (!module.starts_with(kDdp)) return false;
  return module.find_first_not_of("0123456789", kDdp.size()) == std::string_view::npos;
}

}  // namespace

void ReductionLedger::on_event(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::gt_begin:
      if (backward_.begins()) begin_backward(event);
      break;
    case EventKind::gt_end:
      if (backward_.ends()) end_backward(event);
      break;
    case EventKind::bucket_ready:
      on_bucket(event);
      break;
    case EventKind::param_post_acc:
      on_gradient(event);
      break;
    case EventKind::coll_issue:
      on_collective(event);
      break;
    case EventKind::module_fwd_pre:
      on_forward(event);
      break;
    case EventKind::opt_zero_grad:
      on_zero_grad();
      break;
    case EventKind::opt_step:
      on_step(event);
      break;
    case EventKind::mark:
      on_mark(event);
      break;
    default:
      break;
  }
}

void ReductionLedger::begin_backward(const HookEvent& event) {
  has_unmapped_bucket_ = false;
  arrived_.clear();
  story_.begin_story(event);
}

void ReductionLedger::end_backward(const HookEvent& event) {
  backward_lc_ = event.lc;
  settle_closure(!backward_.is_unsynced() && !arrived_.empty());
  if (!has_unmapped_bucket_) return;
  for (const NameId param : arrived_) open_.erase(param);
}

void ReductionLedger::on_bucket(const HookEvent& event) {
  story_.tell({event.rank, event.lc,
               fmt::format("bucket {} launched ({} bytes)", event.index, event.bytes)});
  if (!is_mapped(event)) {
    has_unmapped_bucket_ = true;
    return;
  }
  announced_bytes_ = event.bytes;
  for (const NameId param : event.params) {
    open_.erase(param);
    in_buckets_.insert(param);
    reduced_.insert(param);
  }
}

// A recording that saw the buckets before they were rebuilt names other parameters.
bool ReductionLedger::is_mapped(const HookEvent& bucket) const {
  if (bucket.params.empty()) return false;
  const bool is_declared =
      std::all_of(bucket.params.begin(), bucket.params.end(),
                  [&](NameId param) { return facts_.find(names_.text(param)) != nullptr; });
  return !is_declared || bucket.bytes < 0 || bytes_of(bucket.params) == bucket.bytes;
}

void ReductionLedger::on_gradient(const HookEvent& event) {
  note_averaging();
  if (event.is_grad_none) return;
  if (open_.empty()) carried_bytes_ = 0;
  arrived_.insert(event.param);
  open_[event.param].is_unsynced = backward_.is_unsynced();
}

void ReductionLedger::on_collective(const HookEvent& event) {
  const std::string_view op = names_.text(event.name);
  if (!is_carrying(op) || facts_.group_size(names_.text(event.group)) < 2) return;
  if (backward_.depth() > 0) story_.tell(event);
  if (std::exchange(announced_bytes_, -1) == event.bytes) return;  // that of the bucket
  for (const NameId param : event.params) open_.erase(param);
  carried_bytes_ += std::max<std::int64_t>(event.bytes, 1);
  const bool averages = backward_.depth() == 0 && op.find("reduce") != std::string_view::npos;
  if (averages) averaged_bytes_ += std::max<std::int64_t>(event.bytes, 0);
}

void ReductionLedger::on_forward(const HookEvent& event) {
  if (backward_.depth() > 0) return;  // a recompute
  const std::string_view module = names_.text(event.name);
  if (!is_wrapper_name(module))
    inner_calls_.insert(model_of(module));
  else
    outer_calls_.insert(model_of(fmt::format("model{}.", module.substr(3))));
}

void ReductionLedger::on_mark(const HookEvent& event) {
  if (names_.text(event.name) == "requires_grad:true") unfrozen_.insert(event.param);
}

void ReductionLedger::on_zero_grad() {
  settle_closure(false);
  open_.clear();
  carried_bytes_ = 0;
}

// Before hooktrace 1.1 a step with a closure is written before the closure runs. A synchronised
// backward that follows it without a zero_grad between them is that of the closure.
void ReductionLedger::settle_closure(bool is_of_closure) {
  if (std::exchange(is_closure_possible_, false) && is_of_closure) steps_without_.withdraw_last();
}

void ReductionLedger::on_step(const HookEvent& event) {
  settle_closure(false);
  averaged_bytes_ = 0;
  ++steps_;
  const std::vector<NameId> left = unreduced_of(event);
  if (!left.empty()) {
    UnreducedStep step{.step = event, .backward_lc = backward_lc_};
    step.is_unsynced = std::any_of(left.begin(), left.end(),
                                   [&](NameId param) { return open_.at(param).is_unsynced; });
    for (const NameId param : left) step.params.emplace_back(names_.text(param));
    std::tie(step.cause, step.look_at) = cause_of(left);
    is_closure_possible_ = step.is_unsynced && !facts_.tells_closures;
    steps_without_.add(std::move(step), story_);
  }
  for (const NameId param : left) open_.erase(param);
  reduced_.clear();
  outer_calls_.clear();
  inner_calls_.clear();
}

// What was reduced between a step and the next gradients.
void ReductionLedger::note_averaging() {
  if (averaged_bytes_ == 0) return;
  const std::int64_t averaged = std::exchange(averaged_bytes_, 0);
  std::int64_t bytes = 0;
  for (const auto& [name, param] : facts_.params) bytes += param.bytes;
  if (averaged > 0 && averaged * 2 >= bytes && !steps_without_.is_empty())
    steps_without_.note_averaging();
}

// Whether every rank of a group of several holds the parameter, and DDP is to keep them equal.
bool ReductionLedger::is_replica(NameId param) const {
  const std::string_view name = names_.text(param);
  if (facts_.wrappers.empty()) return true;  // the recording is older than the record
  const WrapperRecord* wrapper = facts_.wrapper_of(name);
  if (wrapper == nullptr || wrapper->kind != "ddp" || wrapper->size < 2) return false;
  const auto is_same = [&](const std::string& ignored) {
    return name == ignored || (name.size() > ignored.size() && name.ends_with("." + ignored));
  };
  return std::none_of(wrapper->ignored.begin(), wrapper->ignored.end(), is_same);
}

std::vector<NameId> ReductionLedger::unreduced_of(const HookEvent& step) const {
  std::set<std::int64_t> with_buckets;  // models of which buckets hold parameters
  for (const NameId param : in_buckets_) with_buckets.insert(model_of(names_.text(param)));
  // A wrapper inside a larger model leaves the parameters around it alone: they are in no bucket
  // from the beginning.
  const auto is_outside = [&](NameId param) {
    return with_buckets.contains(model_of(names_.text(param))) && !in_buckets_.contains(param) &&
           !is_new(facts_, unfrozen_, names_.text(param), param);
  };
  const auto optimizer = facts_.optimizers.find(step.optimizer);
  std::set<NameId> held;
  if (optimizer != facts_.optimizers.end())
    for (const std::string& param : optimizer->second.params) held.insert(names_.find(param));
  std::vector<NameId> left;
  for (const auto& [param, entry] : open_) {
    const bool is_used = optimizer == facts_.optimizers.end() || held.contains(param);
    // In a recording without wrapper records only buckets and no_sync show what DDP reduces.
    const bool is_told =
        !facts_.wrappers.empty() || entry.is_unsynced || in_buckets_.contains(param);
    if (is_used && is_told && is_replica(param) && !is_outside(param)) left.push_back(param);
  }
  if (left.empty() || carried_bytes_ == 0) return left;
  const bool is_carried = is_hooked(left) || carried_bytes_ * kCompressionMax >= bytes_of(left);
  return is_carried ? std::vector<NameId>{} : left;
}

bool ReductionLedger::is_hooked(const std::vector<NameId>& left) const {
  const WrapperRecord* wrapper = facts_.wrapper_of(names_.text(left.front()));
  return wrapper != nullptr && !wrapper->comm_hook.empty();
}

// Why no collective carried them, and what to look at.
std::pair<std::string, std::string> ReductionLedger::cause_of(
    const std::vector<NameId>& left) const {
  const std::int64_t model = model_of(names_.text(left.front()));
  const auto is_any = [&](const auto& matches) {
    return std::any_of(left.begin(), left.end(), matches);
  };
  if (is_hooked(left))
    return {fmt::format("the communication hook {} issued no collective",
                        facts_.wrapper_of(names_.text(left.front()))->comm_hook),
            "the communication hook: it has to return a future of the reduced bucket"};
  const WrapperRecord* wrapper = facts_.wrapper_of(names_.text(left.front()));
  const std::int64_t wrapped = wrapper == nullptr ? model : wrapper->model;
  if (inner_calls_.contains(model) && !outer_calls_.contains(wrapped))
    return {
        "the forward ran on the module inside, past DistributedDataParallel, whose reducer was "
        "therefore not prepared",
        "calls of ddp.module(...) or of the model that was wrapped: call the wrapper"};
  if (is_any([&](NameId param) { return reduced_.contains(param); }))
    return {
        "two backwards ran over one forward, of which DistributedDataParallel reduces the first",
        "several backwards over one forward: sum the losses and call backward once"};
  if (is_any([&](NameId param) { return is_new(facts_, unfrozen_, names_.text(param), param); }))
    return {
        "no bucket holds what is added or made trainable after DistributedDataParallel was made",
        "adapters that are added, and parameters that are unfrozen, after wrapping: do it "
        "before, or wrap again"};
  return {"the hooks of DistributedDataParallel did not run for them",
          "parameters that were replaced after wrapping (model.to(dtype or device), .double(), "
          "load_state_dict(assign=True), new tensors): do it before wrapping"};
}

std::int64_t ReductionLedger::bytes_of(const std::vector<NameId>& params) const {
  std::int64_t bytes = 0;
  for (const NameId param : params) {
    const ParamFact* fact = facts_.find(names_.text(param));
    bytes += fact == nullptr ? 0 : fact->bytes;
  }
  return bytes;
}

void ReductionLedger::finish(std::vector<Diagnosis>& out) {
  const bool is_local =
      std::any_of(facts_.wrappers.begin(), facts_.wrappers.end(), [](const auto& entry) {
        return entry.second.comm_hook.find("ocalSGD") != std::string::npos ||
               entry.second.comm_hook.find("ocal_sgd") != std::string::npos;
      });
  steps_without_.finish(is_local, steps_, out);
}

}  // namespace zeroproof
