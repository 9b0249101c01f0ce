#pragma once

#include <optional>

#include "engine/zero/zero_context.h"

namespace zeroproof {

// What properties have to know of an engine's configuration, as marks before its first forward
// (docs/reference/trace_format.md section 14).
void mark_configuration(const ZeroContext& context);

// How many complete backwards are in the window after an epilogue.
void mark_window(const ZeroContext& context, std::int64_t backwards);

// The same of one optimizer step, in the order in which it was decided.
struct StepFacts {
  bool has_overflow = false;
  std::optional<double> grad_norm;
  double loss_scale = 1.0;  // after the step
};
void mark_step(const ZeroContext& context, const StepFacts& facts);

}  // namespace zeroproof
