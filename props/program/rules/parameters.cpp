// Parameters that are frozen, looked at, or said to be somebody's.
#include <algorithm>

#include "props/program/model_traits.h"
#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

using FrameKind = Frame::Kind;

bool is_in_pass(const State& state) {
  return state.backward_around() != nullptr || state.is_in(FrameKind::forward_hook);
}

bool is_read_elsewhere(const Model& model, const std::string& module) {
  return std::ranges::any_of(nodes_of(model), [&](const Module* const node) {
    const auto* const tied = std::get_if<Tied>(&node->kind);
    const auto* const external = std::get_if<ExternalUse>(&node->kind);
    return (tied && tied->module == module) || (external && external->module == module);
  });
}

std::string freeze_problem(const State& state, const EngineState& engine, const Freeze& freeze) {
  const Model& model = state.model(freeze.engine);
  const ModelTraits traits = traits_of(model);
  const Module* const module = find_module(model, freeze.module);
  const bool is_owner =
      module && elements_of(*module) > 0 &&
      (trained_of(*module) == Trained::all || trained_of(*module) == Trained::bias_only);
  const bool is_frozen = engine.frozen.contains(freeze.module);
  return first_broken(
      {{!state.is_at_top(), "a module is frozen in the middle of something"},
       {!is_owner || is_read_elsewhere(model, freeze.module),
        "a module that is not trained, or trained in two places"},
       {freeze.is_trained != is_frozen, "a module that is so already"},
       {state.engines.size() > 1 || model.losses() > 1, "a module of several engines or losses"},
       {traits.has_tiles || traits.has_experts || traits.has_checkpoints ||
            traits.returns_weights || state.program->world.skips_frames,
        "a module that is frozen beside what keeps its weights"},
       {state.config().is_offloaded() && !state.config().ignore_unused_parameters,
        "a frozen module where each gradient has to come"},
       {state.has_live_graph(freeze.engine), "a module that is frozen while a graph has it"},
       {engine.has_changed_weights || engine.is_spoiled, "a module whose weights have changed"}});
}

// In a context of all its parameters, or where they are whole anyway.
bool has_whole_weights(const State& state, const EngineState& engine, const std::string& name) {
  if (state.stage != 3) return true;
  return std::ranges::all_of(nodes_of(state.model(name)), [&](const Module* const node) {
    const bool is_owner = std::holds_alternative<Linear>(node->kind) ||
                          std::holds_alternative<Custom>(node->kind) ||
                          std::holds_alternative<OwnWeight>(node->kind) ||
                          std::holds_alternative<Experts>(node->kind);
    return !is_owner || engine.gathered.contains(node->name);
  });
}

Verdict frames_verdict(const State& state, const EngineState& engine, const std::string& name,
                       bool needs_no_graph) {
  const std::string why = first_broken(
      {{!state.program->world.skips_frames, "no frames that were skipped"},
       {!state.is_at_top() || !engine.gathered.empty(), "frames in the middle of something"},
       {needs_no_graph && state.has_live_graph(name), "a graph that is given up and kept"}});
  if (!why.empty()) return no_sense(why);
  return Expectation{};
}

}  // namespace

Verdict check(Walk& walk, const Freeze& freeze) {
  State& state = walk.state();
  const auto found = engine_of(state, freeze.engine);
  if (!found) return tl::unexpected(found.error());
  EngineState& engine = **found;
  if (const std::string why = freeze_problem(state, engine, freeze); !why.empty())
    return no_sense(why);
  if (freeze.is_trained)
    engine.frozen.erase(freeze.module);
  else
    engine.frozen.insert(freeze.module);
  return Expectation{};
}

Verdict check(Walk& walk, const Inspect& inspect) {
  State& state = walk.state();
  const auto found = engine_of(state, inspect.engine);
  if (!found) return tl::unexpected(found.error());
  const EngineState& engine = **found;
  const bool reads_gradients = inspect.what == Inspect::What::gradients;
  const bool reads_weights = inspect.what == Inspect::What::weights;
  const std::string why = first_broken(
      {{reads_gradients && is_in_pass(state), "gradients that are on their way are read"},
       {reads_gradients && engine.tiled.has_value(), "gradients before the backward of tiles"},
       {reads_gradients && engine.window.has_spike && state.program->world.tensor > 1,
        "gradients of which replicas have others"},
       {reads_weights && !has_whole_weights(state, engine, inspect.engine),
        "weights that no context holds are read"},
       {engine.tiled.has_value(), "values before the backward of tiles"}});
  if (!why.empty()) return no_sense(why);
  return Expectation{};
}

Verdict check(Walk& walk, const RegisterExternal& external) {
  State& state = walk.state();
  const auto found = engine_of(state, external.engine);
  if (!found) return tl::unexpected(found.error());
  const Model& model = state.model(external.engine);
  const ModelTraits traits = traits_of(model);
  const Module* const module = find_module(model, external.module);
  const std::string why = first_broken(
      {{!module || elements_of(*module) == 0, "a weight that is not there is registered"},
       {state.engines.size() > 1 || traits.has_tiles || traits.returns_weights ||
            state.program->world.skips_frames,
        "a weight is registered with one engine, no tiles and no frames"},
       {state.config().stage3_module_granularity_threshold > 0,
        "a weight of a leaf module is registered"},
       {!state.is_at_top(), "a weight is registered in the middle of something"},
       {state.has_live_graph(external.engine), "a weight is registered while a graph is kept"}});
  if (!why.empty()) return no_sense(why);
  return Expectation{};
}

Verdict check(Walk& walk, const SetLeaf& leaf) {
  State& state = walk.state();
  const auto found = engine_of(state, leaf.engine);
  if (!found) return tl::unexpected(found.error());
  const Module* const module = find_module(state.model(leaf.engine), leaf.module);
  const std::string why = first_broken(
      {{!module || !std::holds_alternative<Experts>(module->kind), "a leaf module of no experts"},
       {state.stage != 3, "a leaf module where no modules fetch"},
       {!state.is_at_top(), "a leaf module in the middle of something"}});
  if (!why.empty()) return no_sense(why);
  return Expectation{};
}

Verdict check(Walk& walk, const EvaluateGuards& guards) {
  State& state = walk.state();
  const auto found = engine_of(state, guards.engine);
  if (!found) return tl::unexpected(found.error());
  return frames_verdict(state, **found, guards.engine, false);
}

Verdict check(Walk& walk, const ReleaseGathered& release) {
  State& state = walk.state();
  const auto found = engine_of(state, release.engine);
  if (!found) return tl::unexpected(found.error());
  auto verdict = frames_verdict(state, **found, release.engine, true);
  if (verdict) (*found)->has_left_graph = false;
  return verdict;
}

}  // namespace zeroproof::program
