#include "props/mutation/counterexample_traces.h"

#include "props/train/case_worlds.h"
#include "props/train/cell_run.h"
#include "props/train/generated_program.h"
#include "props/train/rank_trace.h"
#include "sim/schedulers/replay.h"

namespace zeroproof::mutation {

Result<std::vector<std::string>> write_counterexample_traces(const Counterexample& counterexample,
                                                             const Fault* fault,
                                                             const std::string& path) {
  const train::TrainScenario scenario = train::scenario_of(counterexample.spec);
  train::TrainCell cell = train::cell_of(counterexample.spec);
  mutate(fault, cell);
  auto traces = train::RankTraces::create(path, scenario, cell);
  if (!traces) return tl::unexpected(traces.error());
  ReplayScheduler scheduler(counterexample.choices, ReplayFit::lenient);
  scheduler.new_execution();
  if (train::windows_elsewhere(scenario) > 0) train::run_first_world(scenario, cell);
  train::run_ranks(scenario, cell,
                   {.first_step = train::windows_elsewhere(scenario),
                    .watch = traces->get(),
                    .chooser = &scheduler});
  if (auto written = (*traces)->finish(); !written) return tl::unexpected(written.error());
  std::vector<std::string> paths;
  for (int rank = 0; rank < cell.world_size; ++rank)
    paths.push_back(train::rank_path(path, rank, cell.world_size));
  return paths;
}

}  // namespace zeroproof::mutation
