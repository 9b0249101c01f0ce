#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/precision/loss_scaler.h"
#include "engine/schedule/scheduler_state.h"
#include "zeroproof/engine/full_tensor.h"
#include "zeroproof/engine/partition_rule.h"

namespace zeroproof {

struct TrainingCounters {
  std::int64_t micro_steps = 0;
  std::int64_t global_steps = 0;
  std::int64_t skipped_steps = 0;
  std::int64_t global_samples = 0;
  friend bool operator==(const TrainingCounters&, const TrainingCounters&) = default;
};

// One of the optimizer's groups: its parameters share one step count.
struct ParameterGroup {
  std::vector<std::string> parameters;
  std::map<std::string, double> hyper_parameters = {};  // "lr", "beta1"; finite
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

// Everything that a training goes on from, in tensors that are whole over the data-parallel ranks:
// any number of them can load it. With tensor or expert parallelism each rank's state has the
// shapes of its part.
struct TrainingState {
  std::vector<FullTensor> parameters;       // as Engine::full_parameters()
  std::vector<FullTensor> optimizer_state;  // as Engine::full_optimizer_state(): "name/exp_avg"
  std::vector<ParameterGroup> groups = {};  // empty: one group of all
  // By parameter. Needed to save a part: a rule must say what its tensors are parts of.
  std::map<std::string, PartitionRule> partition_rules = {};
  LossScaler::State loss_scaler = {};
  TrainingCounters counters = {};
  std::optional<SchedulerState> scheduler = {};
};

}  // namespace zeroproof
