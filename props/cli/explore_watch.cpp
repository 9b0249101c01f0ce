#include "props/cli/explore_watch.h"

#include <chrono>

#include "props/cli/interrupt.h"

namespace zeroproof {

ExitCode exit_code_of(ExplorationStatus status) {
  switch (status) {
    case ExplorationStatus::held:
      return ExitCode::held;
    case ExplorationStatus::inconclusive:
      return ExitCode::inconclusive;
    case ExplorationStatus::falsified:
      return ExitCode::falsified;
    case ExplorationStatus::interrupted:
      return ExitCode::interrupted;
    case ExplorationStatus::miscounted:
      return ExitCode::internal;
    case ExplorationStatus::nondeterminism:
      return ExitCode::nondeterminism;
  }
  return ExitCode::internal;
}

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

ExploreWatch watch_for(ProgressLine& progress, ProgressView& view,
                       std::optional<std::int64_t> time_ns) {
  const std::int64_t start = now_ns();
  ExploreWatch watch;
  watch.on_progress = [&](const ExploreProgress& at) {
    view.runs = at.executions;
    view.depth = at.deepest;
    view.states = at.scheduler.states;
    view.findings = at.findings;
    progress.update([&] { return view; });
  };
  watch.should_stop = [start, time_ns] {
    if (was_interrupted()) return StopRequest::interrupted;
    const bool is_over = time_ns && now_ns() - start >= *time_ns;
    return is_over ? StopRequest::time_over : StopRequest::none;
  };
  return watch;
}

}  // namespace zeroproof
