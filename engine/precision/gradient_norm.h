#pragma once

#include <cstdint>
#include <vector>

#include "engine/zero/zero_context.h"

namespace zeroproof {

// The gradient of a step as far as this rank has it, and how ranks come to one decision about it
// (docs/spec/zero.md 2.19).
struct GradientShards {
  std::vector<Span> spans;
  // Every rank has all of it: none needs the others, but for a tensor-parallel group.
  bool is_whole = false;
  // What upstream's all-reduces of a norm and of an overflow flag send; -1: what ours do.
  std::int64_t norm_bytes = -1;
  std::int64_t overflow_bytes = -1;
};

// Whether any shard of this rank holds an infinity or a NaN.
bool any_not_finite(ZeroContext& context, const std::vector<Span>& shards);

// The same of all ranks: one all-reduce over the data group, and one over the tensor-parallel
// group if it has more than one rank. Collective.
bool has_overflow(ZeroContext& context, const GradientShards& gradient);

// The L2 norm of the whole gradient as it is, still scaled; collective in the same way. Sums in
// double, a gradient that is whole in the parts that ranks would own: both have the same bits. A
// norm that is not finite is -1, as upstream: the step is skipped (step_plan.h), and a captured one
// is not clipped.
double gradient_norm(ZeroContext& context, const GradientShards& gradient);

// What this norm is the root of, in one float64 of the device: the host does not wait.
Tensor gradient_squares(ZeroContext& context, const GradientShards& gradient);

// What gradients are divided by before the update: divisor_of(), see ClipRule.
double unscale_and_clip_divisor(double scale, double norm, double clip);

}  // namespace zeroproof
