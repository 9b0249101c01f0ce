// What an engine target reads of its engines.
#include <algorithm>

#include "props/interpreter/engine_target.h"
#include "props/interpreter/observe.h"
#include "props/train/full_values.h"
#include "props/train/scenario.h"

namespace zeroproof::program {
bool EngineTarget::step(std::size_t engine, Observations& seen) {
  Engine& it = *engines_[engine];
  const bool is_boundary =
      !config_.managed_gradient_accumulation || it.is_gradient_accumulation_boundary();
  const std::string prefix = engine_prefix(program_, engine);
  Observations own;
  if (is_boundary && options_.observes && !train::reduces_in_step(config_))
    observe(own, Observed::gradients, prefix, it.full_gradients());
  const StepOutcome outcome = it.step();
  if (!is_boundary) {
    observe_counted_step(seen, prefix, outcome);
    return false;
  }
  seen.insert(seen.end(), own.begin(), own.end());
  observe_outcome(seen, prefix, outcome);
  see_counters(engine, seen);
  if (!options_.observes) return true;
  observe(seen, Observed::update, prefix + "master ", it.full_parameters());
  observe(seen, Observed::update, prefix + "state ", it.full_optimizer_state());
  observe(seen, Observed::update, prefix + "weight ", weights(engine));
  see_left_gradients(engine, seen);
  return true;
}

// A step clears what no parameter group lists, too. Stage 3 keeps no .grad that could be left.
void EngineTarget::see_left_gradients(std::size_t engine, Observations& seen) {
  const auto named = modules_[engine]->named_parameters();
  const auto left = std::ranges::count_if(named, [&](const nn::NamedParameter& parameter) {
    return config_.stage < 3 && parameter.tensor.grad().is_defined();
  });
  seen.push_back({Observed::update,
                  engine_prefix(program_, engine) + "gradients left",
                  {},
                  {static_cast<double>(left)}});
}

void EngineTarget::see_counters(std::size_t engine, Observations& seen) {
  seen.push_back({Observed::counters,
                  engine_prefix(program_, engine) + "counters",
                  {},
                  train::counters_of(*engines_[engine])});
}

std::vector<FullTensor> EngineTarget::weights(std::size_t engine) {
  std::vector<FullTensor> all;
  const auto named = modules_[engine]->named_parameters();
  const auto read = [&] {
    for (const nn::NamedParameter& parameter : named)
      all.push_back({parameter.name, parameter.tensor.sizes(), parameter.tensor.values()});
  };
  if (config_.stage < 3 || contexts_[engine] != 0) {
    read();
    return all;
  }
  TensorList tensors;
  for (const nn::NamedParameter& parameter : named) tensors.push_back(parameter.tensor);
  engines_[engine]->gathered_parameters(tensors, std::nullopt, read);
  return all;
}

void EngineTarget::inspect(std::size_t engine, Inspect::What what, Observations& seen) {
  Engine& it = *engines_[engine];
  const std::string prefix = engine_prefix(program_, engine);
  switch (what) {
    case Inspect::What::gradients:
      return observe(seen, Observed::value, prefix + "gradient ", it.full_gradients());
    case Inspect::What::masters:
      return observe(seen, Observed::value, prefix + "master ", it.full_parameters());
    case Inspect::What::optimizer_state:
      return observe(seen, Observed::value, prefix + "state ", it.full_optimizer_state());
    case Inspect::What::weights:
      return observe(seen, Observed::value, prefix + "weight ", weights(engine));
  }
}

}  // namespace zeroproof::program
