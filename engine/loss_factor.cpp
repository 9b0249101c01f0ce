#include "engine/loss_factor.h"

#include <optional>

#include "zeroproof/internal/engine/hooks/backward_tracker.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {

Tensor scaled(Autograd& autograd, const Tensor& loss, double factor) {
  if (factor == 1.0) return loss;
  const bool is_half = item_bytes(loss.dtype()) == 2;
  const Tensor wide = is_half ? to(autograd, loss, DType::float32) : loss;
  return mul(autograd, wide, factor);
}

double LossFactor::of_managed_loss() const {
  const ZeroConfig& config = context_.config;
  const UpstreamRules& upstream = context_.upstream;
  const double gas_factor = scales_wrt_gas_ ? 1.0 / gas() : 1.0;
  const bool is_unscaled =
      config.stage == 0 && config.fp16.enabled && upstream.stage0_fp16_loss_unscaled;
  const double loss_scale = is_unscaled ? 1.0 : context_.loss_scaler.scale();
  // H8 divides at outputs. With N6, as since 0.19.6, engine.backward divides its loss itself.
  const bool divides = !upstream.divides_at_outputs || upstream.divides_by_running_engine;
  return divides ? loss_scale * gas_factor : loss_scale;
}

// Inside a forward, where the loss is not known yet, a gradient lacks both factors (H10). In a
// backward() of any engine it lacks none (H22: what comes before a prologue is not divided). In
// a manual backward it lacks the steps' factor, even before its prologue (H26).
double LossFactor::at_leaf() const {
  const BackwardTracker& tracker = context_.tracker;
  const UpstreamRules& upstream = context_.upstream;
  if (tracker.is_inside_forward()) {
    if (upstream.stale_boundary_before_prologue) return 1.0;
    return context_.loss_scaler.scale() / gas();
  }
  if (is_backward_managed()) {
    const bool is_undivided = tracker.is_backward_running() && scales_wrt_gas_ &&
                              tracker.is_before_prologue() &&
                              upstream.explicit_epilogue_without_prologue;
    return is_undivided ? gas() : in_managed_backward();
  }
  const bool is_forgotten =
      tracker.is_before_prologue() && upstream.hooks_before_prologue_recounted;
  return is_forgotten ? 1.0 : 1.0 / gas();
}

bool LossFactor::is_needed_at_leaves() const {
  return gas() != 1.0 || context_.loss_scaler.kind() != LossScalerKind::none ||
         in_managed_backward() != 1.0;
}

bool LossFactor::is_backward_manual() const {
  return !context_.tracker.is_inside_forward() && !is_backward_managed();
}

// A loss of several engines is divided by the steps of the one whose backward() runs; the others
// have their own. N6 leaves it at that, and H8 divides elsewhere.
double LossFactor::in_managed_backward() const {
  const std::optional<double> divisor = context_.autograd.global().managed_divisor;
  const bool is_left =
      context_.upstream.divides_by_running_engine || context_.upstream.divides_at_outputs;
  return divisor && !is_left ? *divisor / gas() : 1.0;
}

bool LossFactor::divides_at_outputs() const {
  if (!context_.upstream.divides_at_outputs) return false;
  if (!context_.upstream.divides_by_running_engine) return scales_wrt_gas_;
  return !is_backward_managed();  // the loss is not divided already
}

}  // namespace zeroproof
