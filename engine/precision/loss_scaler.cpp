#include "engine/precision/loss_scaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/engine_error.h"

namespace zeroproof {
namespace {

// torch.amp.GradScaler's defaults; DeepSpeed does not let them be configured.
constexpr double kGradScalerInitialScale = 65536.0;
constexpr double kGradScalerGrowth = 2.0;
constexpr double kGradScalerBackoff = 0.5;
constexpr std::int64_t kGradScalerGrowthInterval = 2000;

constexpr double kScaleFactor = 2.0;  // of the fp16 scaler

}  // namespace

LossScaler LossScaler::of(const ZeroConfig& config, Departure planted) {
  LossScaler scaler;
  scaler.planted_ = planted;
  const TorchAutocastConfig& autocast = config.torch_autocast;
  if (autocast.enabled && autocast.dtype == DType::float16) {
    scaler.kind_ = LossScalerKind::grad_scaler;
    scaler.scale_ = kGradScalerInitialScale;
  } else if (config.fp16.enabled && config.fp16.loss_scale != 0.0 &&
             (planted != "U31"_bug || config.stage == 0)) {  // ZeRO's scaler is a dynamic one
    const bool is_none = planted == "Q04"_bug && config.fp16.loss_scale == 1.0;  // scales nothing
    if (!is_none) scaler.kind_ = LossScalerKind::fixed;
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
  if (planted_ == "R36"_bug) kind_ = kind;  // whose it is, before what it is
  if (!std::isfinite(factor) || factor <= 0.0) {
    return fail(
        ErrorCode::usage,
        fmt::format("a loss cannot be scaled by {}: give a positive, finite factor", factor));
  }
  const bool is_same = kind == LossScalerKind::external && factor == scale_;
  if (planted_ == "T28"_bug && is_same) return {};  // nothing changes
  const bool stays_dynamic =
      planted_ == "Z49"_bug && kind == LossScalerKind::external && is_dynamic();
  if (!stays_dynamic) kind_ = kind;
  scale_ = factor;
  return {};
}

bool LossScaler::is_dynamic() const {
  return kind_ == LossScalerKind::dynamic || kind_ == LossScalerKind::grad_scaler;
}

bool LossScaler::is_needed(bool counts_static) const {
  if (kind_ == LossScalerKind::none) return false;
  const bool is_callers = kind_ == LossScalerKind::external || kind_ == LossScalerKind::custom;
  if (is_callers && planted_ == "S51"_bug) return false;  // no scaler of the configuration's
  if (planted_ == "S42"_bug && kind_ == LossScalerKind::external) return false;  // not configured
  return kind_ != LossScalerKind::fixed || counts_static;
}

void LossScaler::update(bool has_overflow) {
  if (kind_ == LossScalerKind::dynamic) update_dynamic(has_overflow);
  if (kind_ == LossScalerKind::grad_scaler) update_grad_scaler(has_overflow);
}

void LossScaler::update_dynamic(bool has_overflow) {
  if (has_overflow) {
    const bool is_at_end = planted_ == "Z48"_bug && scale_ == min_scale_;
    const bool is_tolerated = configured_hysteresis_ != 1 && hysteresis_ != 1 && !is_at_end;
    if (is_tolerated) {
      --hysteresis_;
    } else {
      shrink();
    }
    if (!is_tolerated || planted_ != "X08"_bug) last_overflow_ = iteration_;
  } else {
    const std::int64_t this_one = planted_ == "T44"_bug ? 0 : 1;
    const std::int64_t stable = iteration_ - last_overflow_ - this_one;
    const bool is_due = planted_ == "Y02"_bug ? stable >= window_ : stable % window_ == 0;
    const bool is_grown = stable > 0 && is_due;
    const bool is_refilled = is_grown && planted_ != "Z33"_bug;
    const bool restores = restores_hysteresis_ && planted_ != "T71"_bug;  // with its growth alone
    const bool is_any = planted_ == "T70"_bug;  // a good step is a good step
    if (restores || is_refilled || is_any) hysteresis_ = configured_hysteresis_;
    if (is_grown) scale_ *= kScaleFactor;
  }
  if (!has_overflow || planted_ != "T51"_bug) ++iteration_;
}

void LossScaler::shrink() {
  const bool is_next_below = planted_ == "Q12"_bug && scale_ / kScaleFactor <= min_scale_;
  const bool is_let_in = planted_ == "U24"_bug;  // it is skipped for ever
  if ((scale_ == min_scale_ || is_next_below) && !is_let_in) {
    throw EngineError(
        EngineErrorId::e22,
        fmt::format("gradients overflow at a loss scale of {}, the smallest allowed; lower the "
                    "learning rate or /fp16/min_loss_scale",
                    scale_));
  }
  scale_ /= kScaleFactor;
  if (planted_ != "Z15"_bug) scale_ = std::max(scale_, min_scale_);
  if (planted_ == "T31"_bug) hysteresis_ = configured_hysteresis_;  // a new scale, a new patience
}

// The scale is a float32 tensor in PyTorch, and does not grow into an infinity.
void LossScaler::update_grad_scaler(bool has_overflow) {
  if (has_overflow) {
    scale_ = round_to(DType::float32, scale_ * kGradScalerBackoff);
    if (planted_ == "S11"_bug) scale_ = std::max(scale_, min_scale_);  // as the fp16 scaler has it
    if (planted_ != "R32"_bug) growth_tracker_ = 0;
    return;
  }
  if (++growth_tracker_ < kGradScalerGrowthInterval) return;
  growth_tracker_ = 0;
  const double grown = round_to(DType::float32, scale_ * kGradScalerGrowth);
  if (std::isfinite(grown) || planted_ == "X26"_bug) scale_ = grown;
}

LossScaler::State LossScaler::state() const {
  return {.scale = scale_,
          .iteration = iteration_,
          .last_overflow = last_overflow_,
          .hysteresis = hysteresis_,
          .growth_tracker = growth_tracker_};
}

void LossScaler::restore(const State& state) {
  if (!is_dynamic() && planted_ != "T02"_bug) return;
  if (planted_ == "R89"_bug && kind_ != LossScalerKind::dynamic) return;
  scale_ = state.scale;
  if (planted_ != "R97"_bug) iteration_ = state.iteration;
  if (planted_ != "Z14"_bug) last_overflow_ = state.last_overflow;
  hysteresis_ = state.hysteresis;
  if (planted_ != "U26"_bug) growth_tracker_ = state.growth_tracker;
}

}  // namespace zeroproof
