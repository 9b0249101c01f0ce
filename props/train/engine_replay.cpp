#include "props/train/engine_replay.h"

#include "props/train/engine_exploration.h"
#include "sim/schedulers/replay.h"

namespace zeroproof::train {

bool EngineReplay::is_reproduced() const {
  return divergence.empty() && (!expected || *expected == found_word(run.findings));
}

Result<EngineReplay> replay_engine(const std::string& source, const Schedule& schedule,
                                   Beside beside) {
  EngineReplay replay;
  replay.source = source;
  replay.schedule = schedule;
  CaseSettings settings = schedule.settings;
  if (const auto found = settings.find("found"); found != settings.end()) {
    replay.expected = found->second;
    settings.erase(found);
  }
  auto engine_case = case_of(schedule.scenario, settings, "schedule");
  if (!engine_case) return tl::unexpected(engine_case.error());
  if (beside == Beside::cuda)
    if (auto opened = open_gpus(*engine_case); !opened) return tl::unexpected(opened.error());
  auto runner = CaseRunner::create(*engine_case);
  if (!runner) return tl::unexpected(runner.error());
  ReplayScheduler scheduler(schedule.choices);
  scheduler.new_execution();
  ExecutionEnd end;
  try {
    replay.run = runner->run(scheduler);
  } catch (const ExecutionCut&) {
    end.was_cut = true;
  }
  scheduler.end_execution(end);
  replay.divergence = scheduler.divergence().value_or("");
  if (beside == Beside::nothing || !replay.divergence.empty()) return replay;
  ReplayScheduler again(schedule.choices, ReplayFit::lenient);
  replay.host = compare_runtimes(*engine_case, again);
  return replay;
}

}  // namespace zeroproof::train
