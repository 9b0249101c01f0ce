#pragma once

#include <cstdint>

#include "zeroproof/engine/zero_config.h"

namespace zeroproof {

enum class LossScalerKind : std::uint8_t { none, fixed, dynamic, external, custom, grad_scaler };

// The factor on a loss, and the rule by which it moves (docs/spec/zero.md 2.19). Plain data: equal
// on all ranks, because overflow is decided together. Precedence where several apply: a custom
// factor, then the autocast GradScaler, then the fp16 scaler.
class LossScaler {
 public:
  LossScaler() = default;  // none: factor 1
  static LossScaler of(const ZeroConfig& config);
  // A factor that replaces whatever the configuration says; overflow does not move it. A custom
  // one comes with the engine's options and stays; an external one is the caller's to set again
  // before any forward (upstream's override). An error unless it is positive and finite.
  Result<void> set_custom(double factor);
  Result<void> set_external(double factor);

  LossScalerKind kind() const { return kind_; }
  double scale() const { return scale_; }
  bool is_dynamic() const;
  // Where scale() must be called before a manual backward. `counts_static`: upstream does not
  // count a static fp16 scale (H9).
  bool is_needed(bool counts_static) const;

  // Once an optimizer step. Throws EngineError overflow_at_minimum_scale for an overflow at the
  // smallest scale, and then has changed no member.
  void update(bool has_overflow);

  struct State {
    double scale = 1.0;
    std::int64_t iteration = 0;
    std::int64_t last_overflow = -1;
    std::int64_t hysteresis = 1;
    std::int64_t growth_tracker = 0;  // GradScaler
    friend bool operator==(const State&, const State&) = default;
  };
  State state() const;
  // A factor that does not move is configuration: it stays as it is.
  void restore(const State& state);

 private:
  Result<void> set_factor(LossScalerKind kind, double factor);
  void update_dynamic(bool has_overflow);
  void shrink();
  void update_grad_scaler(bool has_overflow);

  LossScalerKind kind_ = LossScalerKind::none;
  double scale_ = 1.0;
  double min_scale_ = 1.0;
  std::int64_t window_ = 1000;
  std::int64_t configured_hysteresis_ = 1;
  bool restores_hysteresis_ = false;
  std::int64_t hysteresis_ = 1;
  std::int64_t iteration_ = 0;
  std::int64_t last_overflow_ = -1;
  std::int64_t growth_tracker_ = 0;
};

}  // namespace zeroproof
