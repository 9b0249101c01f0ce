#pragma once

#include <optional>
#include <vector>

#include "engine/zero/zero_context.h"

namespace zeroproof {

// Decisions about a step that all ranks take alike (zero_semantics 2.19), from the shards of the
// gradient that this rank owns. Each is one small all-reduce over the data group and one over the
// tensor-parallel group if it has more than one rank; every rank must call.

// Whether any rank's gradient holds an infinity or a NaN.
bool has_overflow(ZeroContext& context, const std::vector<Span>& shards);

// The L2 norm of the whole gradient as it is, still scaled. Sums in double. A norm that is not
// finite is -1, as upstream: it makes the clip factor 1.
double gradient_norm(ZeroContext& context, const std::vector<Span>& shards);

// What gradients are divided by before the update: the loss scale that the backward used, times
// max(1, norm / (scale * clip)), with upstream's 1e-6.
double unscale_and_clip_divisor(double scale, double norm, double clip);

}  // namespace zeroproof
