#include "sim/zero_epilogue/path_counts.h"

#include <fmt/format.h>

#include "model/check.h"
#include "sim/zero_epilogue/events.h"

namespace zeroproof::zero_epilogue {
namespace {

constexpr std::uint64_t kStepsBetweenStopRequests = 4096;

}  // namespace

Result<PathCounts> PathCounts::make(const Ranks& ranks, const std::function<bool()>& should_stop) {
  PathCounts counts(ranks);
  switch (counts.build(should_stop)) {
    case Built::all:
      return counts;
    case Built::stopped:
      return fail(ErrorCode::cannot_run, "zero_epilogue: stopped while schedules were counted");
    case Built::too_many:
      break;
  }
  return fail(ErrorCode::usage, fmt::format("zero_epilogue: more than {} states to count the "
                                            "schedules of; lower P, N or K",
                                            kStatesMax));
}

// Depth first; a state is settled when all its successors are.
PathCounts::Built PathCounts::build(const std::function<bool()>& should_stop) {
  enum class Phase : std::uint8_t { fresh, open, settled };
  std::vector<Phase> phases{Phase::fresh};
  std::vector<std::uint32_t> stack{met_.insert(0).index};
  for (std::uint64_t steps = 0; !stack.empty(); ++steps) {
    if (should_stop && steps % kStepsBetweenStopRequests == 0 && should_stop())
      return Built::stopped;
    const std::uint32_t at = stack.back();
    if (phases[at] != Phase::fresh) {
      stack.pop_back();
      if (phases[at] == Phase::open) settle(at);
      phases[at] = Phase::settled;
      continue;
    }
    phases[at] = Phase::open;
    for_each_event(ranks_, met_.code(at), kAllProcesses,
                   [&](const Event&, Property violated, Code next) {
                     if (violated != Property::none) return;
                     const auto [index, is_new] = met_.insert(next);
                     if (is_new) phases.push_back(Phase::fresh);
                     if (phases[index] == Phase::fresh) stack.push_back(index);
                   });
    if (met_.size() > kStatesMax) return Built::too_many;
  }
  return Built::all;
}

void PathCounts::settle(std::uint32_t state) {
  exact_.resize(met_.size());
  approximate_.resize(met_.size());
  violated_.resize(met_.size());
  const Code code = met_.code(state);
  Wide exact = 0;
  double approximate = 0;
  double events = 0;
  std::array<double, kProperties> sums{};
  for_each_event(ranks_, code, kAllProcesses, [&](const Event&, Property violated, Code next) {
    events += 1;
    const Wide before = exact;
    exact += below(violated, next);
    has_overflowed_ |= exact < before;
    if (violated != Property::none) {
      approximate += 1;
      sums[static_cast<std::size_t>(violated)] += 1;
      return;
    }
    const std::uint32_t index = met_.find(next);
    approximate += approximate_[index];
    for (std::size_t i = 1; i < kProperties; ++i) sums[i] += violated_[index][i];
  });
  if (events == 0) {
    const bool is_hang = !ranks_.has_finished(ranks_.digits(code));
    sums[static_cast<std::size_t>(Property::a5)] = is_hang ? 1 : 0;
    exact = 1;
    approximate = events = 1;
  }
  for (double& sum : sums) sum /= events;
  exact_[state] = exact;
  approximate_[state] = approximate;
  violated_[state] = sums;
}

PathCounts::Wide PathCounts::below(Property violated, Code next) const {
  return violated != Property::none ? Wide{1} : exact_[met_.find(next)];
}

OrderCount PathCounts::schedules() const {
  if (has_overflowed_) return OrderCount::overflowed();
  OrderCount count(static_cast<std::uint64_t>(exact_.front() >> 64));
  count *= OrderCount(std::uint64_t{1} << 32);
  count *= OrderCount(std::uint64_t{1} << 32);
  return count += OrderCount(static_cast<std::uint64_t>(exact_.front()));
}

std::vector<Event> PathCounts::schedule(Wide number) const {
  ZP_CHECK(!has_overflowed_ && number < exact_.front(), "no schedule has this number");
  std::vector<Event> events;
  Code code = 0;
  for (bool has_ended = false; !has_ended;) {
    bool is_taken = false;
    Code after = code;
    for_each_event(ranks_, code, kAllProcesses,
                   [&](const Event& event, Property violated, Code next) {
                     if (is_taken) return;
                     const Wide here = below(violated, next);
                     if (number >= here) {
                       number -= here;
                       return;
                     }
                     is_taken = true;
                     events.push_back(event);
                     has_ended = violated != Property::none;
                     after = next;
                   });
    has_ended |= !is_taken;
    code = after;
  }
  return events;
}

PathCounts::Wide PathCounts::number(const std::vector<Event>& schedule) const {
  ZP_CHECK(!has_overflowed_, "too many schedules to number them");
  Wide number = 0;
  Code code = 0;
  for (const Event& wanted : schedule) {
    bool is_met = false;
    Code after = code;
    for_each_event(ranks_, code, kAllProcesses,
                   [&](const Event& event, Property violated, Code next) {
                     if (is_met) return;
                     is_met = event == wanted;
                     if (is_met) {
                       after = next;
                     } else {
                       number += below(violated, next);
                     }
                   });
    ZP_CHECK(is_met, "an event of the schedule is not enabled");
    code = after;
  }
  return number;
}

}  // namespace zeroproof::zero_epilogue
