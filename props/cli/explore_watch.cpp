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

namespace {

std::function<StopRequest()> stop_after(std::optional<std::int64_t> time_ns) {
  return [start = now_ns(), time_ns] {
    if (was_interrupted()) return StopRequest::interrupted;
    const bool is_over = time_ns && now_ns() - start >= *time_ns;
    return is_over ? StopRequest::time_over : StopRequest::none;
  };
}

}  // namespace

ExploreWatch watch_for(ProgressLine& progress, ProgressView& view,
                       std::optional<std::int64_t> time_ns) {
  ExploreWatch watch;
  watch.on_progress = [&](const ExploreProgress& at) {
    view.runs = at.executions;
    view.depth = at.deepest;
    view.states = at.scheduler.states;
    view.findings = at.findings;
    progress.update([&] { return view; });
  };
  watch.should_stop = stop_after(time_ns);
  return watch;
}

train::EngineWatch engine_watch_for(ProgressLine& progress, ProgressView& view,
                                    std::optional<std::int64_t> time_ns) {
  if (time_ns) view.seconds_max = *time_ns / 1'000'000'000;
  train::EngineWatch watch;
  watch.on_progress = [&](const train::EngineProgress& at) {
    view.runs = at.executions;
    view.depth = at.deepest;
    view.findings = at.findings;
    view.unique = at.classes;
    view.unique_of = at.own;
    progress.update([&] { return view; });
  };
  watch.should_stop = stop_after(time_ns);
  return watch;
}

}  // namespace zeroproof
