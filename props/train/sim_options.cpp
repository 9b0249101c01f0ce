#include "props/train/sim_options.h"

namespace zeroproof::train {

SimWorldOptions sim_options_of(const TrainCell& cell) {
  const SimOrder order = cell.sim.value_or(SimOrder{});
  SimWorldOptions options;
  options.world_size = cell.world_size;
  options.degrees = {.sequence = cell.sequence_degree, .tensor = cell.tensor_degree};
  options.device = cell.device;
  options.preemption = order.preempts      ? Preemption::at_every_call
                       : order.is_of_ranks ? Preemption::of_ranks
                                           : Preemption::when_blocked;
  options.has_late_compute = order.has_late_compute;
  return options;
}

}  // namespace zeroproof::train
