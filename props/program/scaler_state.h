#pragma once

#include <cstdint>

#include "zeroproof/engine/zero_config.h"

namespace zeroproof::program {

// The loss scale of one engine as its user knows it (docs/spec/zero/precision.md).
struct ScalerState {
  enum class Kind : std::uint8_t { none, fixed, dynamic, grad_scaler, custom, external };
  Kind kind = Kind::none;
  double scale = 1.0;
  std::int64_t version = 0;  // grows with each number
  std::int64_t iteration = 0;
  std::int64_t last_overflow = -1;
  std::int64_t hysteresis = 1;
  std::int64_t good_steps = 0;

  static ScalerState of(const ZeroConfig& config, int grows_in);

  bool is_needed() const { return kind != Kind::none; }
  bool is_dynamic() const { return kind == Kind::dynamic || kind == Kind::grad_scaler; }
  void set(Kind given, double number);
  // False: an overflow at the smallest scale, which does not change the state.
  bool update(const ZeroConfig& config, bool has_overflow);
  // Of a checkpoint, where this one moves by itself.
  void restore(const ScalerState& saved);

  friend bool operator==(const ScalerState&, const ScalerState&) = default;

 private:
  void move_to(double number);
  bool update_dynamic(const Fp16Config& config, bool has_overflow);
  bool shrink(double least);
  void update_grad_scaler(bool has_overflow);
};

// Whether a step looks at its gradients for what is not finite.
bool checks_overflow(const ZeroConfig& config, const ScalerState& scaler);
// Whether a step with such a gradient is skipped all the same.
bool skips_overflow(const ZeroConfig& config, const ScalerState& scaler);

}  // namespace zeroproof::program
