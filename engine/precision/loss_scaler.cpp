#include "engine/precision/loss_scaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zeroproof/engine/engine_error.h"

namespace zeroproof {
namespace {

// torch.amp.GradScaler's defaults; DeepSpeed does not let them be configured.
constexpr double kGradScalerInitialScale = 65536.0;
constexpr double kGradScalerGrowth = 2.0;
constexpr double kGradScalerBackoff = 0.5;
constexpr std::int64_t kGradScalerGrowthInterval = 2000;

constexpr double kScaleFactor = 2.0;  // of the fp16 scaler

}  // namespace

LossScaler LossScaler::of(const ZeroConfig& config) {
  LossScaler scaler;
  const TorchAutocastConfig& autocast = config.torch_autocast;
  if (autocast.enabled && autocast.dtype == DType::float16) {
    scaler.kind_ = LossScalerKind::grad_scaler;
    scaler.scale_ = kGradScalerInitialScale;
  } else if (config.fp16.enabled && config.fp16.loss_scale != 0.0) {
    scaler.kind_ = LossScalerKind::fixed;
    scaler.scale_ = config.fp16.loss_scale;
  } else if (config.fp16.enabled) {
    scaler.kind_ = LossScalerKind::dynamic;
    scaler.scale_ = std::ldexp(1.0, config.fp16.initial_scale_power);
    scaler.min_scale_ = config.fp16.min_loss_scale;
    scaler.window_ = config.fp16.loss_scale_window;
    scaler.configured_hysteresis_ = config.fp16.hysteresis;
    scaler.hysteresis_ = config.fp16.hysteresis;
    scaler.restores_hysteresis_ = config.fp16.consecutive_hysteresis;
  }
  return scaler;
}

Result<void> LossScaler::set_custom(double factor) {
  return set_factor(LossScalerKind::custom, factor);
}

Result<void> LossScaler::set_external(double factor) {
  return set_factor(LossScalerKind::external, factor);
}

Result<void> LossScaler::set_factor(LossScalerKind kind, double factor) {
  if (!std::isfinite(factor) || factor <= 0.0) {
    return fail(
        ErrorCode::usage,
        fmt::format("a loss cannot be scaled by {}: give a positive, finite factor", factor));
  }
  kind_ = kind;
  scale_ = factor;
  return {};
}

bool LossScaler::is_dynamic() const {
  return kind_ == LossScalerKind::dynamic || kind_ == LossScalerKind::grad_scaler;
}

bool LossScaler::is_needed(bool counts_static) const {
  if (kind_ == LossScalerKind::none) return false;
  return kind_ != LossScalerKind::fixed || counts_static;
}

void LossScaler::update(bool has_overflow) {
  if (kind_ == LossScalerKind::dynamic) update_dynamic(has_overflow);
  if (kind_ == LossScalerKind::grad_scaler) update_grad_scaler(has_overflow);
}

void LossScaler::update_dynamic(bool has_overflow) {
  if (has_overflow) {
    const bool is_tolerated = configured_hysteresis_ != 1 && hysteresis_ != 1;
    if (is_tolerated) {
      --hysteresis_;
    } else {
      shrink();
    }
    last_overflow_ = iteration_;
  } else {
    const std::int64_t stable = iteration_ - last_overflow_ - 1;
    const bool is_due = stable % window_ == 0;
    const bool is_grown = stable > 0 && is_due;
    if (restores_hysteresis_ || is_grown) hysteresis_ = configured_hysteresis_;
    if (is_grown) scale_ *= kScaleFactor;
  }
  ++iteration_;
}

void LossScaler::shrink() {
  if (scale_ == min_scale_) {
    throw EngineError(
        EngineErrorId::overflow_at_minimum_scale,
        fmt::format("gradients overflow at a loss scale of {}, the smallest allowed; lower the "
                    "learning rate or /fp16/min_loss_scale",
                    scale_));
  }
  scale_ /= kScaleFactor;
  scale_ = std::max(scale_, min_scale_);
}

// The scale is a float32 tensor in PyTorch, and does not grow into an infinity.
void LossScaler::update_grad_scaler(bool has_overflow) {
  if (has_overflow) {
    scale_ = round_to(DType::float32, scale_ * kGradScalerBackoff);
    growth_tracker_ = 0;
    return;
  }
  if (++growth_tracker_ < kGradScalerGrowthInterval) return;
  growth_tracker_ = 0;
  const double grown = round_to(DType::float32, scale_ * kGradScalerGrowth);
  if (std::isfinite(grown)) scale_ = grown;
}

LossScaler::State LossScaler::state() const {
  return {.scale = scale_,
          .iteration = iteration_,
          .last_overflow = last_overflow_,
          .hysteresis = hysteresis_,
          .growth_tracker = growth_tracker_};
}

void LossScaler::restore(const State& state) {
  if (!is_dynamic()) return;
  scale_ = state.scale;
  iteration_ = state.iteration;
  last_overflow_ = state.last_overflow;
  hysteresis_ = state.hysteresis;
  growth_tracker_ = state.growth_tracker;
}

}  // namespace zeroproof
