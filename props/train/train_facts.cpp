#include "props/train/train_facts.h"

#include <algorithm>

namespace zeroproof::train {
namespace {

// Of each engine, after this window; engines step in their order.
void count_applied(const WindowValues& window, std::vector<std::int64_t>& applied) {
  for (std::size_t i = 0; i < window.outcomes.size(); ++i)
    if (window.outcomes[i].is_applied) ++applied[i % applied.size()];
}

// The engine that "e1.l1.weight/step" belongs to, by its prefix; 0 for a name without one.
std::size_t engine_of(const std::string& name, std::size_t engines) {
  for (std::size_t engine = 1; engine < engines; ++engine)
    if (name.starts_with(engine_prefix(engine))) return engine;
  return 0;
}

bool is_scaled(const TrainCell& cell) {
  const bool has_grad_scaler = cell.config && cell.config->torch_autocast.enabled &&
                               cell.config->torch_autocast.dtype == DType::float16;
  return cell.precision == Precision::fp16 || has_grad_scaler;
}

}  // namespace

TrainFacts facts_of(const TrainScenario& scenario, const TrainCell& cell) {
  TrainFacts facts{.scenario = std::string(scenario.name),
                   .stage = cell.stage,
                   .world_size = cell.world_size,
                   .gradient_accumulation_steps = scenario.accumulation_steps,
                   .forwards = scenario.forwards,
                   .is_scaled = is_scaled(cell),
                   .is_manual = cell.backward == BackwardKind::tensor,
                   .is_managed = scenario.is_managed,
                   .is_offloaded = scenario.is_offloaded};
  if (const auto refusal = expected_refusal(scenario, cell))
    facts.refusal = engine_error_name(*refusal);
  return facts;
}

bool has_equal_step_counts(const TrainScenario& scenario,
                           const std::vector<WindowValues>& windows) {
  std::vector<std::int64_t> applied(scenario.engines(), 0);
  for (const WindowValues& window : windows) {
    count_applied(window, applied);
    for (const FullTensor& state : window.states) {
      if (!state.name.ends_with("/step")) continue;
      const auto expected = static_cast<double>(applied[engine_of(state.name, applied.size())]);
      const auto is_expected = [&](double count) { return count == expected; };
      if (!std::ranges::all_of(state.values, is_expected)) return false;
    }
  }
  return true;
}

}  // namespace zeroproof::train
