#pragma once

#include <cstdint>
#include <optional>

#include "props/reference/part.h"

namespace zeroproof::reference {

// Which micro-batch of a window runs, and whether it is the last: docs/spec/zero/engine.md 2.11.
class Boundary {
 public:
  explicit Boundary(const ZeroConfig& config) : config_(config) {}

  // Every event of the engine, before it is judged.
  void follow(const HookEvent& event, std::string_view name);

  // False where the caller owns the window, but for its step.
  bool is_boundary() const;
  std::int64_t micro_steps() const { return micro_; }

 private:
  const ZeroConfig& config_;
  std::optional<bool> override_;
  std::int64_t micro_ = 0;
  bool is_known_ = false;  // until the engine has reported its steps, once and after each load
  bool is_step_running_ = false;
};

}  // namespace zeroproof::reference
