// What an engine target reads of its engines, and their checkpoints.
#include <fmt/format.h>

#include <stdexcept>

#include "model/check.h"
#include "props/interpreter/engine_target.h"
#include "props/interpreter/observe.h"
#include "props/train/checkpoint_damage.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof::program {
namespace {

bool reduces_in_step(const ZeroConfig& config) {
  return !config.managed_gradient_accumulation && config.stage < 2;
}

}  // namespace

void EngineTarget::step(std::size_t engine, Observations& seen) {
  Engine& it = *engines_[engine];
  const bool is_boundary =
      !config_.managed_gradient_accumulation || it.is_gradient_accumulation_boundary();
  const std::string prefix = engine_prefix(program_, engine);
  Observations own;
  if (is_boundary && options_.observes && !reduces_in_step(config_))
    observe(own, Observed::gradients, prefix, it.full_gradients());
  const StepOutcome outcome = it.step();
  if (!is_boundary) return;
  seen.insert(seen.end(), own.begin(), own.end());
  observe_outcome(seen, prefix, outcome);
  seen.push_back({Observed::counters,
                  prefix + "counters",
                  {},
                  {static_cast<double>(it.micro_steps()), static_cast<double>(it.global_steps()),
                   static_cast<double>(it.skipped_steps()),
                   static_cast<double>(it.global_samples()), it.loss_scale()}});
  if (!options_.observes) return;
  observe(seen, Observed::update, prefix + "master ", it.full_parameters());
  observe(seen, Observed::update, prefix + "state ", it.full_optimizer_state());
  observe(seen, Observed::update, prefix + "weight ", weights(engine));
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

std::string EngineTarget::folder(std::size_t engine) const {
  return "engine" + std::to_string(engine);
}

void EngineTarget::save(std::size_t engine, const Save& save, Observations& seen) {
  files_.heal();
  const bool fails = save.failure != Save::Failure::none;
  if (fails && runtime().rank() == 0)
    files_.fail_write(save.at + 1, save.failure == Save::Failure::disk_full);
  const auto saved =
      engines_[engine]->save_checkpoint(folder(engine), {.tag = save.tag, .files = &files_});
  files_.heal();
  if (fails) {
    seen.push_back({Observed::refusal, "a save that fails says so", {}, {saved ? 0.0 : 1.0}});
  } else if (!saved) {
    throw std::runtime_error(saved.error().text);
  }
}

void EngineTarget::load(std::size_t engine, const Load& load, Observations& seen) {
  const bool fails = load.failure != Load::Failure::none;
  if (fails) throw UsageError("not yet");
  const auto loaded =
      engines_[engine]->load_checkpoint(folder(engine), {.tag = load.tag, .files = &files_});
  if (!loaded) throw std::runtime_error(loaded.error().text);
  inspect(engine, Inspect::What::masters, seen);
}

void EngineTarget::load_resumed(const std::string& tag) {
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    const auto loaded =
        engines_[i]->load_checkpoint(folder(i), {.tag = tag, .files = &files_});
    if (!loaded) throw std::runtime_error(loaded.error().text);
  }
}

}  // namespace zeroproof::program
