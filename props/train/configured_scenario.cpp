#include "props/train/configured_scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/train/programs.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof::train {
namespace {

constexpr std::int64_t kMostMicroBatches = 64;

// Whether sums of the window's gradients are exact in the dtype on the wire.
bool has_exact_data(const TrainScenario& scenario, const TrainCell& cell) {
  if (cell.data != DataMode::exact) return true;
  try {
    (void)exact_data_of(scenario, cell);
    return true;
  } catch (const AutogradError&) {
    return false;
  }
}

// A window of one micro-batch and a step, in a scenario that is not about accumulation.
bool has_repeatable_window(const TrainScenario& scenario) {
  return scenario.window == plain_window;
}

std::string_view word(bool value) {
  return value ? "true" : "false";
}

std::string_view word(OffloadDevice device) {
  return device == OffloadDevice::cpu ? "cpu" : "none";
}

// Notes each setting that the run has in place of the document's.
class Replacements {
 public:
  explicit Replacements(std::string_view scenario) : scenario_(scenario) {}

  template <class Value>
  void compare(std::string_view pointer, Value document, Value run) {
    if (document == run) return;
    notes.push_back(
        {ConfigNoteKind::replaced, std::string(pointer),
         fmt::format("{} replaced by {}: of scenario {} and the flags", document, run, scenario_)});
  }

  std::vector<ConfigNote> notes;

 private:
  std::string_view scenario_;
};

}  // namespace

TrainScenario configured(const TrainScenario& scenario, const TrainCell& cell) {
  TrainScenario made = scenario;
  if (!cell.config || !has_repeatable_window(scenario)) return made;
  made.window = accumulating_window;
  made.is_managed = cell.config->managed_gradient_accumulation;
  std::int64_t steps = std::min(cell.config->gradient_accumulation_steps, kMostMicroBatches);
  do {
    made.accumulation_steps = made.forwards = steps;
  } while (!has_exact_data(made, cell) && --steps > 1);
  return made;
}

std::vector<ConfigNote> replaced_notes(const TrainScenario& scenario, const TrainCell& cell) {
  if (!cell.config) return {};
  const ZeroConfig& document = *cell.config;
  const ZeroConfig run = config_of(scenario, cell);
  Replacements replaced(scenario.name);
  replaced.compare("/gradient_accumulation_steps", document.gradient_accumulation_steps,
                   run.gradient_accumulation_steps);
  replaced.compare("/managed_gradient_accumulation", word(document.managed_gradient_accumulation),
                   word(run.managed_gradient_accumulation));
  replaced.compare("/zero_optimization/overlap_comm", word(document.has_overlap_comm()),
                   word(run.has_overlap_comm()));
  replaced.compare("/zero_optimization/offload_optimizer", word(document.offload_optimizer),
                   word(run.offload_optimizer));
  replaced.compare("/fp16/enabled", word(document.fp16.enabled), word(run.fp16.enabled));
  replaced.compare("/bf16/enabled", word(document.bf16.enabled), word(run.bf16.enabled));
  replaced.compare("/torch_autocast/enabled", word(document.torch_autocast.enabled),
                   word(run.torch_autocast.enabled));
  return replaced.notes;
}

}  // namespace zeroproof::train
