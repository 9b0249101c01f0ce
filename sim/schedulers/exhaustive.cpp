#include "sim/schedulers/exhaustive.h"

#include <fmt/format.h>

#include <utility>

#include "model/check.h"

namespace zeroproof {

bool ExhaustiveScheduler::new_execution() {
  if (has_exhausted_ || is_unfinished_ || divergence_) return false;
  depth_ = 0;
  cut_below_.reset();
  if (!std::exchange(has_started_, true)) return true;
  ++path_.back().taken;
  ++transitions_;
  return true;
}

std::size_t ExhaustiveScheduler::choose(const ChoicePoint& at) {
  ZP_CHECK(!at.options.empty(), "a choice point without options");
  return depth_ < path_.size() ? follow(at) : enter(at);
}

// The way back to the branch that this execution is about. It must look as it did before.
std::size_t ExhaustiveScheduler::follow(const ChoicePoint& at) {
  const Step& step = path_[depth_];
  if (step.options != at.options.size() || step.state != Fingerprint(at.state)) {
    divergence_ = fmt::format(
        "choice point {} ('{}', {} options) was another one when the same choices were made "
        "before ({} options): the world is not deterministic",
        depth_ + 1, at.site, at.options.size(), step.options);
    throw ExecutionCut();
  }
  ++depth_;
  return step.taken;
}

std::size_t ExhaustiveScheduler::enter(const ChoicePoint& at) {
  const Fingerprint state = at.state;
  if (pruning_ == Pruning::by_fingerprint) {
    const auto [entry, is_new] = known_.try_emplace(state);
    if (!is_new) {
      // An open state lies on this very path: its orders are infinite and cannot be counted.
      has_cycle_ = has_cycle_ || entry->second.is_open;
      cut_below_ = entry->second.below;
      throw ExecutionCut();
    }
  }
  path_.push_back({state, static_cast<std::uint32_t>(at.options.size()), 0, {}});
  ++depth_;
  ++transitions_;
  return 0;
}

void ExhaustiveScheduler::end_execution(const ExecutionEnd& end) {
  if (divergence_) return;
  if (end.was_cut && !cut_below_) {
    is_unfinished_ = true;  // by a budget: what lies below stays unknown
    return;
  }
  if (depth_ < path_.size()) {
    divergence_ = fmt::format(
        "the execution ended after {} choices; the same choices led to {} before: the world is "
        "not deterministic",
        depth_, path_.size());
    return;
  }
  if (end.final_state && pruning_ == Pruning::by_fingerprint) {
    known_.try_emplace(*end.final_state, Known{OrderCount(1), false});
  }
  close_branch(cut_below_.value_or(OrderCount(1)));
}

// Adds what lies below the branch just taken, and closes every state that has no branch left.
void ExhaustiveScheduler::close_branch(OrderCount below) {
  while (!path_.empty()) {
    Step& step = path_.back();
    step.below += below;
    if (step.taken + 1 < step.options) return;
    below = step.below;
    if (pruning_ == Pruning::by_fingerprint) known_[step.state] = {below, false};
    path_.pop_back();
  }
  total_ = below;
  has_exhausted_ = true;
}

SchedulerStats ExhaustiveScheduler::stats() const {
  SchedulerStats stats;
  if (pruning_ == Pruning::by_fingerprint) {
    stats.states = known_.size();
    stats.transitions = transitions_;
  }
  if (has_exhausted_ && !has_cycle_) stats.complete_orders = total_;
  stats.has_exhausted = has_exhausted_;
  return stats;
}

}  // namespace zeroproof
