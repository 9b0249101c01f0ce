#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "zeroproof/props/fact.h"

namespace zeroproof {

// Where the accumulation boundaries of one engine lie (docs/spec/zero.md 2.11), by its marks:
// every `gradient_accumulation_steps` micro-steps, unless the caller sets the boundary itself.
//
// Recorders before hooktrace 1.1 do not see the caller. There the boundary is unknown as soon as
// several backwards come before one step although every micro-step should have its own.
class BoundaryBook {
 public:
  // To be called for every mark of the engine.
  void read_mark(std::string_view label);

  // 0: not recorded.
  std::int64_t steps() const { return steps_; }
  bool is_managed() const { return is_managed_; }
  // What the caller has set.
  const std::optional<bool>& forced() const { return forced_; }

  // Whether a backward or step that begins with `micro_step` complete micro-steps is at a boundary;
  // nullopt: unknown.
  std::optional<bool> is_boundary(std::int64_t micro_step) const;

  // Whether the caller may have set the boundary without a trace of it, in a window of so many
  // backwards with one step.
  bool is_set_out_of_sight(std::int64_t backwards) const;

  void append_state(std::string& bytes) const;

 private:
  std::int64_t steps_ = 0;
  bool is_managed_ = true;
  bool has_marks_ = false;  // the recording says what the caller sets
  std::optional<bool> forced_;
};

}  // namespace zeroproof
