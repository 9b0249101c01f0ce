#include "props/train/engine_replay.h"

#include "props/train/engine_exploration.h"
#include "sim/schedulers/replay.h"

namespace zeroproof::train {

bool EngineReplay::is_reproduced() const {
  return divergence.empty() && (!expected || *expected == found_word(run.findings));
}

Result<EngineReplay> replay_engine(const std::string& source, const Schedule& schedule,
                                   bool is_on_host) {
  EngineReplay replay;
  replay.source = source;
  replay.schedule = schedule;
  CaseSettings settings = schedule.settings;
  if (const auto found = settings.find("found"); found != settings.end()) {
    replay.expected = found->second;
    settings.erase(found);
  }
  const auto engine_case = case_of(schedule.scenario, settings, "schedule");
  if (!engine_case) return tl::unexpected(engine_case.error());
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
  if (!is_on_host || !replay.divergence.empty()) return replay;
  ReplayScheduler again(schedule.choices, ReplayFit::lenient);
  replay.host = compare_runtimes(*engine_case, again);
  return replay;
}

}  // namespace zeroproof::train
