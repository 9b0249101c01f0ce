// World, configuration and engines, before the first statement.
#include <algorithm>
#include <cmath>
#include <set>

#include "props/program/model_traits.h"
#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

constexpr int kGroupsMost = 3;

std::string world_problem(const World& world) {
  return first_broken({{world.ranks < 1 || world.tensor < 1 || world.size() > World::kMost,
                        "a world of no or too many ranks"},
                       {world.sequence < 1 || world.ranks % world.sequence != 0,
                        "a sequence that ranks cannot share"},
                       {world.sequence > 1 && world.tensor > 1, "sequences of replicas"}});
}

// What skipped frames and missing autograd calls leave.
std::string autograd_problem(const Program& program) {
  const World& world = program.world;
  const ZeroConfig& config = program.config;
  const bool is_full = world.autograd == World::Autograd::full;
  return first_broken({{!is_full && (config.stage == 0 || program.engines.size() > 1),
                        "an autograd without counts below stage 1 or of several engines"},
                       {world.skips_frames && (config.stage != 3 || program.engines.size() > 1),
                        "skipped frames of several engines or outside stage 3"},
                       {world.skips_frames && config.stage3_module_granularity_threshold > 0,
                        "leaf modules of skipped frames"}});
}

std::string engine_problem(const Program& program, const EngineSpec& engine) {
  const ZeroConfig& config = program.config;
  const auto model = std::ranges::find(program.models, engine.model, &Model::name);
  if (engine.name.empty()) return "an engine without a name";
  if (model == program.models.end()) return "engine '" + engine.name + "' has no model";
  const bool has_ungrouped = std::ranges::any_of(
      weight_owners(*model),
      [](const Module* const owner) { return trained_of(*owner) == Trained::ungrouped; });
  const bool is_autocast = config.torch_autocast.enabled;
  const bool has_grad_scaler = is_autocast && config.torch_autocast.dtype == DType::float16;
  return first_broken(
      {{engine.parameter_groups < 1 || engine.parameter_groups > kGroupsMost,
        "no or too many parameter groups"},
       {engine.lists_frozen && (engine.parameter_groups == 1 || has_ungrouped),
        "a frozen parameter in no group that could list it"},
       {engine.custom_loss_scale &&
            !(std::isfinite(*engine.custom_loss_scale) && *engine.custom_loss_scale > 0.0),
        "a loss that cannot be scaled by that"},
       {engine.custom_loss_scale &&
            (config.fp16.enabled || is_autocast || config.bf16.master_weights_and_grads),
        "a loss scale of its own where there is another"},
       {engine.grows_in < 0 ||
            (engine.grows_in > 0 && (!has_grad_scaler || program.world.tensor > 1)),
        "a scale that does not grow"},
       {engine.parameter_groups > 1 &&
            engine.parameter_groups > static_cast<int>(trained_weights(*model).size()),
        "a parameter group without parameters"},
       {engine.reads_document && (config.reduce_bucket_size < 1 || config.sub_group_size < 1),
        "a size of 0 that no document keeps"}});
}

bool has_twins(std::vector<std::string> names) {
  std::ranges::sort(names);
  return std::ranges::adjacent_find(names) != names.end();
}

std::string names_problem(const Program& program) {
  std::vector<std::string> engines;
  std::vector<std::string> models;
  for (const EngineSpec& engine : program.engines) engines.push_back(engine.name);
  for (const Model& model : program.models) models.push_back(model.name);
  return first_broken({{engines.empty() || engines.size() > 2, "no or too many engines"},
                       {has_twins(engines), "two engines of one name"},
                       {has_twins(models), "two models of one name"}});
}

}  // namespace

std::string head_problem(const Program& program) {
  for (const std::string& problem :
       {names_problem(program), world_problem(program.world), autograd_problem(program)})
    if (!problem.empty()) return problem;
  if (const auto valid = validate(program.config); !valid) return valid.error().text;
  for (const EngineSpec& engine : program.engines)
    if (std::string problem = engine_problem(program, engine); !problem.empty()) return problem;
  if (std::string problem = leaf_names_problem(program, program.config.stage); !problem.empty())
    return problem;
  for (const Model& model : program.models)
    if (std::string problem = model_problem(program, model); !problem.empty())
      return "model '" + model.name + "': " + problem;
  return magnitude_problem(program);
}

std::string leaf_names_problem(const Program& program, int stage) {
  const LeafModuleConfig& leaf = program.config.leaf_module;
  if (stage != 3 || (leaf.classes.empty() && leaf.names.empty() && leaf.name_suffixes.empty()))
    return {};
  for (const EngineSpec& engine : program.engines)
    if (!traits_of(program.model_of(engine.name)).has_experts)
      return "a leaf module that engine '" + engine.name + "' does not have";
  return {};
}

EngineState new_engine(const State& state, const EngineSpec& engine) {
  EngineState made;
  made.scaler = ScalerState::of(state.config(), engine.grows_in);
  if (engine.custom_loss_scale)
    made.scaler.set(ScalerState::Kind::custom, *engine.custom_loss_scale);
  return made;
}

State first_state(const Program& program) {
  State state;
  state.program = &program;
  state.ranks = program.world.ranks;
  state.stage = program.config.stage;
  for (const EngineSpec& engine : program.engines)
    state.engines[engine.name] = new_engine(state, engine);
  return state;
}

}  // namespace zeroproof::program
