#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "props/train/cell_run.h"
#include "props/train/train_cell.h"
#include "sim/schedule.h"
#include "sim/world/fault_kind.h"
#include "zeroproof/model/result.h"

namespace zeroproof::train {

// What an execution is judged by.
enum class Judge : std::uint8_t {
  values,   // bits: of the ranks among each other, and against the baseline
  events,   // the properties of every rank's events and accesses
  host,     // as values; and tokens and bits against a run on host threads in the same node order
  streams,  // as values; and P46 to P48: what an exhaustive search takes for granted
  cuda,     // as host, beside a run on GPUs
};

// Whether an execution is compared with a run of another runtime.
constexpr bool is_beside(Judge judge) {
  return judge == Judge::host || judge == Judge::cuda;
}

// A cell in the simulated world, without the choices: what an exploration runs again and again.
struct EngineCase {
  TrainCell cell;  // its `sim` says where ranks may be preempted; scheduler and seed are not used
  NodeOrder nodes = NodeOrder::faithful;
  Judge judge = Judge::values;
  std::string config_path;  // of cell.config; empty for the built-in one
  // Kinds that may strike, one fault after the other; empty: none does.
  std::vector<sim::FaultKind> faults = {};
  std::int64_t faults_max = 1;  // of one execution
};

// Keys and values as the flags of `zeroproof explore` and a schedule have them: stage, world-size,
// dtype, backward, data, steps, policy, quirks, autograd-api, ds-config, preemption (blocked,
// every-call, ranks), compute (in-step, late), nodes (faithful, shared, each), judge (values,
// events, host, streams, cuda), faults (kinds with commas, or all), faults-max. Faults need nodes
// faithful and judge values or streams.
using CaseSettings = std::map<std::string, std::string>;

// What is absent has its default. Errors: an unknown scenario, key or value, code usage; a
// configuration that cannot be read; fewer GPUs than judge cuda needs, code cannot_run. `where`
// starts them.
Result<EngineCase> case_of(const std::string& scenario, const CaseSettings& settings,
                           std::string_view where);

// A GPU for each rank of the case, whose tensors count as living there. Fewer are an error, code
// cannot_run.
Result<void> open_gpus(EngineCase& engine_case);

// Only what differs from the defaults, but always "stage".
CaseSettings settings_of(const EngineCase& engine_case);

// Whether a schedule is of a cell (else of a protocol scenario).
bool is_engine_schedule(const Schedule& schedule);

}  // namespace zeroproof::train
