#include "props/train/schedule_traces.h"

#include <fmt/format.h>

#include "props/train/cell_run.h"
#include "props/train/engine_case.h"
#include "props/train/rank_trace.h"
#include "props/train/scenario.h"
#include "sim/explorer.h"
#include "sim/schedulers/replay.h"

namespace zeroproof::train {

Result<std::vector<std::string>> write_schedule_traces(const Schedule& schedule,
                                                       const std::string& path) {
  CaseSettings settings = schedule.settings;
  settings.erase("found");
  const auto engine_case = case_of(schedule.scenario, settings, "schedule");
  if (!engine_case) return tl::unexpected(engine_case.error());
  if (!engine_case->faults.empty()) {
    return fail(ErrorCode::cannot_run,
                "a schedule with faults is several runs and has no picture; replay reports it");
  }
  const TrainCell& cell = engine_case->cell;
  const auto scenario = find_scenario(cell.scenario);
  if (!scenario) return tl::unexpected(scenario.error());
  auto traces = RankTraces::create(path, **scenario, cell);
  if (!traces) return tl::unexpected(traces.error());
  ReplayScheduler scheduler(schedule.choices);
  scheduler.new_execution();
  ExecutionEnd end;
  try {
    run_ranks(**scenario, cell,
              {.watch = traces->get(), .chooser = &scheduler, .nodes = engine_case->nodes});
  } catch (const ExecutionCut&) {
    end.was_cut = true;
  }
  scheduler.end_execution(end);
  if (const auto divergence = scheduler.divergence()) {
    return fail(ErrorCode::unreadable, "schedule: " + *divergence);
  }
  if (auto written = (*traces)->finish(); !written) return tl::unexpected(written.error());
  std::vector<std::string> paths;
  for (int rank = 0; rank < cell.world_size; ++rank) {
    paths.push_back(rank_path(path, rank, cell.world_size));
  }
  return paths;
}

}  // namespace zeroproof::train
