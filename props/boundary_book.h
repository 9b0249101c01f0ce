#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "props/fact.h"

namespace zeroproof {

// Where the accumulation boundaries of one engine lie (zero_semantics 2.11), as its marks tell:
// every `gradient_accumulation_steps` micro-steps, unless the caller sets the boundary itself.
//
// Recorders before hooktrace 1.1 do not see the caller. There the boundary is unknown as soon as a
// step updates the parameters between two regular boundaries after several backwards: only a
// boundary set by hand does so.
class BoundaryBook {
 public:
  // To be called for every mark of the engine.
  void read_mark(std::string_view label);

  // 0: not told.
  std::int64_t steps() const { return steps_; }
  bool is_managed() const { return is_managed_; }
  // What the caller has set.
  const std::optional<bool>& forced() const { return forced_; }

  // Whether a backward or step that begins with `micro_step` complete micro-steps is at a boundary;
  // nullopt: unknown.
  std::optional<bool> is_boundary(std::int64_t micro_step) const;

  // A step that began with `micro_step` complete micro-steps updated the parameters although the
  // count says otherwise, after several backwards.
  bool is_set_out_of_sight(std::int64_t micro_step, std::int64_t backwards) const;

  void append_state(std::string& bytes) const;

 private:
  std::int64_t steps_ = 0;
  bool is_managed_ = true;
  bool has_marks_ = false;  // the recording says what the caller sets
  std::optional<bool> forced_;
};

}  // namespace zeroproof
