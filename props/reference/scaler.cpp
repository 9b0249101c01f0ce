#include "props/reference/scaler.h"
#include "props/reference/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "props/mark.h"

namespace zeroproof::reference {
namespace {

// torch.amp.GradScaler's constants, which no configuration changes.
constexpr double kGradScalerScale = 65536.0;
constexpr std::int64_t kGradScalerInterval = 2000;
constexpr double kFactor = 2.0;

}  // namespace

Scaler::Scaler(const Surroundings& around)
    : Part(around), kind_(Kind::none), scale_(1.0), hysteresis_(config().fp16.hysteresis) {
  const TorchAutocastConfig& autocast = config().torch_autocast;
  if (autocast.enabled && autocast.dtype == DType::float16) {
    kind_ = Kind::grad_scaler;
    scale_ = kGradScalerScale;
  } else if (config().fp16.enabled && config().fp16.loss_scale != 0.0) {
    kind_ = Kind::fixed;
    scale_ = config().fp16.loss_scale;
  } else if (config().fp16.enabled) {
    kind_ = Kind::dynamic;
    scale_ = std::ldexp(1.0, config().fp16.initial_scale_power);
  }
}

void Scaler::on_event(const HookEvent& event) {
  if (world_.unseen.sets_scale || !world_.is_ours()) return;
  if (event.kind == EventKind::engine_return && text(event.name) == calls::kLoad) is_known_ = false;
  if (event.kind != EventKind::mark) return;
  if (const auto flag = mark_number(text(event.name), "overflow")) overflow_ = *flag != 0.0;
  if (const auto scale = mark_number(text(event.name), "loss_scale")) see_scale(event, *scale);
}

void Scaler::see_scale(const HookEvent& event, double scale) {
  const double before = scale_;
  if (overflow_ && is_known_) update(*overflow_);
  if (is_known_)
    ledger_.judge(Rule::loss_scale, scale == scale_, event.lc, [&] {
      return fmt::format("the loss scale becomes {} after {}, and its rule gives {}", scale, before,
                         scale_);
    });
  scale_ = scale;
  overflow_.reset();
}

void Scaler::update(bool has_overflow) {
  if (kind_ == Kind::dynamic) update_dynamic(has_overflow);
  if (kind_ == Kind::grad_scaler) update_grad_scaler(has_overflow);
}

void Scaler::update_dynamic(bool has_overflow) {
  const Fp16Config& fp16 = config().fp16;
  if (has_overflow) {
    if (fp16.hysteresis == 1 || hysteresis_ == 1) {
      scale_ = std::max(scale_ / kFactor, fp16.min_loss_scale);
    } else {
      --hysteresis_;
    }
    last_overflow_ = iteration_++;
    return;
  }
  const std::int64_t stable = iteration_++ - last_overflow_ - 1;
  const bool is_grown = stable > 0 && stable % fp16.loss_scale_window == 0;
  if (is_grown || fp16.consecutive_hysteresis) hysteresis_ = fp16.hysteresis;
  if (is_grown) scale_ *= kFactor;
}

void Scaler::update_grad_scaler(bool has_overflow) {
  if (has_overflow) {
    scale_ /= kFactor;
    grown_ = 0;
  } else if (++grown_ == kGradScalerInterval) {
    scale_ *= kFactor;
    grown_ = 0;
  }
}

}  // namespace zeroproof::reference
