#pragma once

#include <cmath>

#include "zeroproof/internal/model/device_code.h"

namespace zeroproof {

// What becomes of gradients before an update: one source for the host and for kernels, which have
// the same bits. Gradients are divided by the loss scale that the backward used, times
// max(1, norm / (scale * clip)), with upstream's 1e-6; no clipping for a `clip` of 0.
struct ClipRule {
  double scale = 1.0;
  double clip = 0.0;
};

// -1 where it is not finite, as upstream: that makes the clip factor 1.
ZP_HOST_DEVICE inline double norm_of_squares(double squares) {
  const double norm = std::sqrt(squares);
  return std::isfinite(norm) ? norm : -1.0;
}

ZP_HOST_DEVICE inline double divisor_of(const ClipRule& rule, double norm) {
  if (rule.clip <= 0.0) return rule.scale;
  const double clip_factor = (norm / rule.scale + 1e-6) / rule.clip;
  return clip_factor > 1.0 ? clip_factor * rule.scale : rule.scale;
}

}  // namespace zeroproof
