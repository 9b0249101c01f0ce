// The loss scale, and who sets it.
#include <cmath>

#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

// A backward of any engine is under way, or has left gradients with this one.
bool has_scaled_gradients(const State& state, const EngineState& engine) {
  return state.backward_around() != nullptr || engine.window.has_gradients ||
         engine.tiled.has_value();
}

bool may_own_scale(const State& state) {
  const ZeroConfig& config = state.config();
  if (config.fp16.enabled) return true;
  const bool has_wide_masters = !config.bf16.master_weights_and_grads;
  return !config.torch_autocast.enabled && state.engines.size() == 1 && has_wide_masters;
}

}  // namespace

Verdict check(Walk& walk, const Scale& scale) {
  State& state = walk.state();
  const auto found = engine_of(state, scale.engine);
  if (!found) return tl::unexpected(found.error());
  const auto value = state.values.find(scale.value);
  if (value == state.values.end() && !scale.value.empty())
    return no_sense("there is no value '" + scale.value + "'");
  if (state.backward_around() || state.is_in(Frame::Kind::forward_hook))
    return no_sense("a loss that is scaled in the middle of a pass");
  if (value == state.values.end() || !value->second.has_graph || !value->second.is_scalar)
    return refused_with(EngineErrorId::scale_of_invalid_loss);
  if (scale.as.empty() || scale.as.find('.') != std::string::npos)
    return no_sense("a scaled loss without a name");
  Value scaled = value->second;
  for (Term& term : scaled.terms) term.factors.push_back({scale.engine, (*found)->scaler.version});
  (*found)->is_scale_called = true;
  state.define(scale.as, std::move(scaled));
  return Expectation{};
}

Verdict check(Walk& walk, const SetScale& set) {
  State& state = walk.state();
  const auto found = engine_of(state, set.engine);
  if (!found) return tl::unexpected(found.error());
  EngineState& engine = **found;
  if (state.is_in(Frame::Kind::forward_hook))
    return no_sense("a loss scale that is set in the middle of a forward");
  const bool is_other = set.loss_scale != engine.scaler.scale;
  if (is_other && has_scaled_gradients(state, engine)) return refused_otherwise();
  if (!std::isfinite(set.loss_scale) || set.loss_scale <= 0.0) return refused_otherwise();
  if (!may_own_scale(state)) return no_sense("a loss scale that is not needed");
  if (has_one_backward(state.program->data))
    return no_sense("another loss scale of gradients at their limits");
  if (state.backward_around()) return no_sense("a loss scale that is set in a backward");
  engine.scaler.set(ScalerState::Kind::external, set.loss_scale);
  return Expectation{};
}

}  // namespace zeroproof::program
