#pragma once

#include <vector>

#include "engine/zero/zero_context.h"

namespace zeroproof {

// Decisions about a step that all ranks take alike (docs/spec/zero.md 2.19), from the shards of the
// gradient that this rank owns.

// Whether any shard of this rank holds an infinity or a NaN.
bool any_not_finite(ZeroContext& context, const std::vector<Span>& shards);

// The same of all ranks: one all-reduce over the data group, and one over the tensor-parallel
// group if it has more than one rank. Collective.
bool has_overflow(ZeroContext& context, const std::vector<Span>& shards,
                  const CollectiveForm& form);

// The same where this rank has the whole gradient. Not collective, but for a tensor-parallel group.
bool has_whole_overflow(ZeroContext& context, const std::vector<Span>& gradients);

// The L2 norm of the whole gradient as it is, still scaled; collective in the same way. Sums in
// double. A norm that is not finite is -1, as upstream: the step is skipped (step_plan.h), and a
// captured one is not clipped.
double gradient_norm(ZeroContext& context, const std::vector<Span>& shards,
                     const CollectiveForm& form);

// The same where this rank has the whole gradient: summed in the `slices` that ranks would own, so
// that the result has the same bits. Not collective, but for a tensor-parallel group.
double whole_gradient_norm(ZeroContext& context, const std::vector<Span>& gradients, int slices);

// What these norms are the roots of, in one float64 of the device: the host does not wait. The
// second has the bits of the sum that whole_gradient_norm() makes.
Tensor gradient_squares(ZeroContext& context, const std::vector<Span>& shards,
                        const CollectiveForm& form);
Tensor whole_gradient_squares(ZeroContext& context, const std::vector<Span>& gradients, int slices);

// What gradients are divided by before the update: divisor_of(), see ClipRule.
double unscale_and_clip_divisor(double scale, double norm, double clip);

}  // namespace zeroproof
