#include "props/program/scaler_state.h"

#include <algorithm>
#include <cmath>

namespace zeroproof::program {
namespace {

constexpr double kGradScalerFirst = 65536.0;
constexpr std::int64_t kGradScalerInterval = 2000;

}  // namespace

ScalerState ScalerState::of(const ZeroConfig& config, int grows_in) {
  ScalerState state;
  const Fp16Config& fp16 = config.fp16;
  if (config.torch_autocast.enabled && config.torch_autocast.dtype == DType::float16) {
    state.kind = Kind::grad_scaler;
    state.scale = kGradScalerFirst;
    if (grows_in > 0) state.good_steps = kGradScalerInterval - grows_in;
  } else if (fp16.enabled && fp16.loss_scale != 0.0) {
    state.kind = Kind::fixed;
    state.scale = fp16.loss_scale;
  } else if (fp16.enabled) {
    state.kind = Kind::dynamic;
    state.scale = std::ldexp(1.0, fp16.initial_scale_power);
    state.hysteresis = fp16.hysteresis;
  }
  return state;
}

void ScalerState::set(Kind given, double number) {
  kind = given;
  move_to(number);
}

void ScalerState::move_to(double number) {
  scale = number;
  ++version;
}

bool ScalerState::update(const ZeroConfig& config, bool has_overflow) {
  if (kind == Kind::grad_scaler) update_grad_scaler(has_overflow);
  return kind != Kind::dynamic || update_dynamic(config.fp16, has_overflow);
}

bool ScalerState::update_dynamic(const Fp16Config& config, bool has_overflow) {
  if (has_overflow) {
    if (config.hysteresis != 1 && hysteresis != 1) {
      --hysteresis;
    } else if (!shrink(config.min_loss_scale)) {
      return false;
    }
    last_overflow = iteration;
  } else {
    const std::int64_t stable = iteration - last_overflow - 1;
    const bool grows = stable > 0 && stable % config.loss_scale_window == 0;
    if (config.consecutive_hysteresis || grows) hysteresis = config.hysteresis;
    if (grows) move_to(scale * 2.0);
  }
  ++iteration;
  return true;
}

bool ScalerState::shrink(double least) {
  if (scale == least) return false;
  move_to(std::max(scale / 2.0, least));
  return true;
}

void ScalerState::update_grad_scaler(bool has_overflow) {
  if (has_overflow) {
    good_steps = 0;
    return move_to(scale / 2.0);
  }
  if (++good_steps < kGradScalerInterval) return;
  good_steps = 0;
  move_to(scale * 2.0);
}

void ScalerState::restore(const ScalerState& saved) {
  if (!is_dynamic()) return;
  const std::int64_t number = version + 1;
  const Kind own = kind;
  *this = saved;
  kind = own;
  version = number;
}

bool checks_overflow(const ZeroConfig& config, const ScalerState& scaler) {
  const bool is_of_stage = config.stage == 1 || config.stage == 2;
  return scaler.is_needed() ||
         (config.bf16.enabled && config.bf16.check_grad_overflow && is_of_stage);
}

bool skips_overflow(const ZeroConfig& config, const ScalerState& scaler) {
  return checks_overflow(config, scaler) || !config.bf16.enabled || config.bf16.check_grad_overflow;
}

}  // namespace zeroproof::program
