#pragma once

#include <cstdint>
#include <optional>

#include "props/reference/part.h"

namespace zeroproof::reference {

// How the loss scale moves from step to step: docs/spec/zero/gradients.md 2.19, precision.md 6.1.
class Scaler final : public Part {
 public:
  explicit Scaler(const Surroundings& around);

  void on_event(const HookEvent& event) override;

 private:
  enum class Kind : std::uint8_t { none, fixed, dynamic, grad_scaler };

  void see_scale(const HookEvent& event, double scale);
  void update(bool has_overflow);
  void update_dynamic(bool has_overflow);
  void update_grad_scaler(bool has_overflow);

  Kind kind_;
  double scale_;
  bool is_known_ = true;  // iteration, hysteresis and the rest, which a load replaces
  std::int64_t iteration_ = 0;
  std::int64_t last_overflow_ = -1;
  std::int64_t hysteresis_;
  std::int64_t grown_ = 0;
  std::optional<bool> overflow_;  // of the running step
};

}  // namespace zeroproof::reference
