#pragma once

#include "zeroproof/internal/engine/runtime/kernels.h"
#include "zeroproof/internal/engine/runtime/span.h"
#include "zeroproof/internal/engine/runtime/stream.h"

namespace zeroproof {

// How a sum of gradients over ranks becomes what the step uses: what happens to the values before
// the collective and after it (docs/spec/zero.md 2.15). A field of 1 has no effect. Plain data.
struct GradientAveraging {
  double divides_before = 1.0;
  double scales_before = 1.0;
  double scales_after = 1.0;

  // The whole average before the sum: no partial sum leaves the range of one gradient.
  static GradientAveraging before(double divisor) { return {.divides_before = divisor}; }
  // A part before and the rest after it: `factor` is /gradient_predivide_factor.
  static GradientAveraging around(double factor, double divisor) {
    return {.scales_before = 1.0 / factor, .scales_after = factor / divisor};
  }

  void prepare(Kernels& kernels, Stream& stream, const Span& data) const;
  void finish(Kernels& kernels, Stream& stream, const Span& data) const;
};

}  // namespace zeroproof
