#include "sim/schedulers/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace zeroproof {

ReplayScheduler::ReplayScheduler(Choices choices, ReplayFit fit)
    : choices_(std::move(choices)), fit_(fit) {}

bool ReplayScheduler::new_execution() {
  next_ = 0;
  return !std::exchange(has_run_, true);
}

std::size_t ReplayScheduler::choose(const ChoicePoint& at) {
  if (at.options.size() == 1) return 0;
  const std::size_t number = next_++;
  if (number < choices_.size() && choices_[number] < at.options.size()) return choices_[number];
  if (fit_ == ReplayFit::lenient) return 0;
  divergence_ =
      number >= choices_.size()
          ? fmt::format("the schedule has {} choices, but '{}' asks for another one: {}",
                        choices_.size(), at.site, fmt::join(at.options, ", "))
          : fmt::format("choice {} of the schedule is {}, but '{}' has {} options there: {}",
                        number + 1, choices_[number], at.site, at.options.size(),
                        fmt::join(at.options, ", "));
  throw ExecutionCut();
}

void ReplayScheduler::end_execution(const ExecutionEnd& end) {
  if (end.was_cut || fit_ == ReplayFit::lenient || next_ == choices_.size()) return;
  divergence_ = fmt::format("the execution ended after {} choices, but the schedule has {}", next_,
                            choices_.size());
}

}  // namespace zeroproof
