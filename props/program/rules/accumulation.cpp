// Steps, boundaries, and gradients that go.
#include <algorithm>
#include <cmath>

#include "props/program/model_traits.h"
#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

using FrameKind = Frame::Kind;

// Whether a backward is under way that has reached the engine; an error where only the autograd
// knows.
Result<bool> is_in_backward_of(const State& state, const std::string& engine) {
  bool is_reached = false;
  for (const Frame& frame : state.frames) {
    if (frame.kind != FrameKind::backward_hook) continue;
    if (frame.managed == engine || frame.engine == engine) {
      is_reached = true;
    } else if (frame.engines.contains(engine)) {
      return no_sense("a step of an engine that the backward around may have reached");
    }
  }
  return is_reached;
}

bool lacks_gradient(const State& state, const std::string& name, const EngineState& engine) {
  const ZeroConfig& config = state.config();
  const bool asks = config.is_offloaded() && !config.ignore_unused_parameters &&
                    (state.stage == 1 || state.stage == 2);
  if (!asks) return false;
  for (const std::string& weight : trained_weights(state.model(name)))
    if (!engine.window.reached.contains(weight)) return true;
  return false;
}

// They came in forward, and only the backward of that forward reduces them.
bool has_tile_gradients(const State& state, const std::string& name, const EngineState& engine) {
  const std::set<std::string> reduced = trained_weights(state.model(name));
  return std::ranges::any_of(state.graphs.at(*engine.tiled).flow->tiled,
                             [&](const std::string& weight) { return reduced.contains(weight); });
}

std::string step_problem(const State& state, const std::string& name, const EngineState& engine) {
  const bool is_boundary = state.steps_model(engine);
  return first_broken(
      {{state.is_in(FrameKind::forward_hook), "a step in the middle of a forward"},
       {engine.tiled && !has_tile_gradients(state, name, engine),
        "a step before the backward of tiles whose weights have no elements or no group"},
       {!engine.frozen.empty(), "a step while a module is frozen"},
       {is_boundary && engine.window.has_local, "a step with gradients that are not reduced"},
       {is_boundary && !engine.gathered.empty() && engine.has_changed_weights,
        "a step in a context whose changes it would lose"}});
}

Verdict take_boundary_step(State& state, const std::string& name, EngineState& engine) {
  const ZeroConfig& config = state.config();
  if (lacks_gradient(state, name, engine))
    return refused_with(EngineErrorId::offloaded_parameter_without_gradient);
  const bool is_skipped = engine.window.has_spike && skips_overflow(config, engine.scaler);
  const bool is_known = engine.window.has_spike && checks_overflow(config, engine.scaler);
  if (!engine.scaler.update(config, is_known))
    return refused_with(EngineErrorId::overflow_at_minimum_scale);
  engine.is_spoiled = engine.is_spoiled || (engine.window.has_spike && !is_skipped);
  if (!is_skipped) engine.has_changed_weights = engine.all_changed_them = false;
  clear_window(engine);
  renew_weights(engine);
  engine.has_forwarded = false;
  ++engine.micro_steps;
  return Expectation{};
}

}  // namespace

Verdict check(Walk& walk, const Step& step) {
  State& state = walk.state();
  const auto found = engine_of(state, step.engine);
  if (!found) return tl::unexpected(found.error());
  EngineState& engine = **found;
  if (engine.is_in_no_sync || engine.is_coalescing)
    return refused_with(EngineErrorId::step_inside_no_sync);
  const auto is_inside = is_in_backward_of(state, step.engine);
  if (!is_inside) return tl::unexpected(is_inside.error());
  if (*is_inside) return refused_with(EngineErrorId::incomplete_backward);
  if (const std::string why = step_problem(state, step.engine, engine); !why.empty())
    return no_sense(why);
  if (engine.tiled) return refused_with(EngineErrorId::incomplete_backward);
  if (state.steps_model(engine)) return take_boundary_step(state, step.engine, engine);
  ++engine.micro_steps;
  engine.has_forwarded = false;
  return Expectation{};
}

Verdict check(Walk& walk, const ZeroGrad& zero_grad) {
  State& state = walk.state();
  const auto found = engine_of(state, zero_grad.engine);
  if (!found) return tl::unexpected(found.error());
  const auto is_inside = is_in_backward_of(state, zero_grad.engine);
  if (!is_inside || *is_inside) return no_sense("zero_grad() of gradients that are on their way");
  if ((*found)->tiled) return no_sense("zero_grad() before the backward of tiles");
  clear_window(**found);
  return Expectation{};
}

Verdict check(Walk& walk, const SetBoundary& set) {
  State& state = walk.state();
  const auto found = engine_of(state, set.engine);
  if (!found) return tl::unexpected(found.error());
  if (!state.config().managed_gradient_accumulation)
    return refused_with(EngineErrorId::boundary_set_in_unmanaged_accumulation);
  if (state.backward_around() || state.is_in(FrameKind::forward_hook))
    return no_sense("a boundary that is set in the middle of a pass");
  if ((*found)->tiled) return no_sense("a boundary that is set before the backward of tiles");
  (*found)->boundary = set.is_boundary;
  return Expectation{};
}

Verdict check(Walk& walk, const SetLearningRate& set) {
  State& state = walk.state();
  if (const auto found = engine_of(state, set.engine); !found) return tl::unexpected(found.error());
  const int groups = state.program->engine(set.engine).parameter_groups;
  const bool has_group = !set.group || (*set.group >= 0 && *set.group < groups);
  if (state.backward_around() || state.is_in(FrameKind::forward_hook))
    return no_sense("a learning rate that is set in the middle of a pass");
  const bool is_rate = std::isfinite(set.learning_rate) && set.learning_rate >= 0.0;
  return is_rate && has_group ? Expectation{} : refused_otherwise();
}

// A program sets gradients to find leftovers of them, and clears them right after it.
Verdict check(Walk& walk, const SetGrad& set) {
  State& state = walk.state();
  const auto found = engine_of(state, set.engine);
  if (!found) return tl::unexpected(found.error());
  const std::string why = first_broken(
      {{state.stage == 3, "gradients of partitioned parameters that are set"},
       {!state.is_at_top(), "gradients that are set in the middle of something"},
       {(*found)->tiled.has_value(), "gradients that are set before the backward of tiles"}});
  if (!why.empty()) return no_sense(why);
  (*found)->owes = EngineState::Owes::zero_grad;
  return Expectation{};
}

}  // namespace zeroproof::program
