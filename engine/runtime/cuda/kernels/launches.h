#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <vector>

#include "engine/runtime/cuda/kernels/strided.h"
#include "engine/runtime/update_rules.h"
#include "zeroproof/internal/engine/runtime/clip_rule.h"
#include "zeroproof/internal/engine/runtime/process_group.h"
#include "zeroproof/internal/model/ops.h"

namespace zeroproof::cuda {

// Each queues one kernel, or two for a long sum, and returns what CUDA says of that. Elements are
// computed in double, without contraction, and rounded once, so that they have the bits of CpuOps
// and HostKernels; the mathematical functions may differ from the host's in the last bit of a
// double. Tensors have equal numbers of elements unless it says else.

cudaError_t launch_fill(cudaStream_t stream, const Strided& target, double value);
cudaError_t launch_copy(cudaStream_t stream, const Strided& target, const Strided& source,
                        double factor);
cudaError_t launch_add(cudaStream_t stream, const Strided& target, const Strided& source,
                       double factor);
cudaError_t launch_scale(cudaStream_t stream, const Strided& target, double factor);
// target *= factor, and factor = 1 / divisor_of(rule, norm of the squares), a float64 each.
cudaError_t launch_scale_by(cudaStream_t stream, const Strided& target, const double* factor);
cudaError_t launch_clip_factor(cudaStream_t stream, double* factor, const double* squares,
                               const ClipRule& rule);
cudaError_t launch_divide(cudaStream_t stream, const Strided& target, double divisor);

// Bytes of memory that no other range writes.
struct CopyRange {
  void* to;
  const void* from;
  std::int64_t bytes;
};
cudaError_t launch_copies(cudaStream_t stream, const std::vector<CopyRange>& ranges);

// output[i] over inputs[rank][i] of all ranks, in their order, each partial sum rounded to the
// dtype. The output may be one of the inputs.
inline constexpr int kSummedRanksMax = 16;
struct RankSum {
  std::array<const void*, kSummedRanksMax> inputs{};  // dense, also in memory of another GPU
  void* output = nullptr;
  std::int64_t elements = 0;
  DType dtype = DType::float32;
  ReduceOp reduce = ReduceOp::sum;
  int ranks = 1;
};
cudaError_t launch_rank_sum(cudaStream_t stream, const RankSum& sum);

// Into target's first element. From left to right for up to kOrderedSumMax elements, beyond that in
// blocks that depend on the size alone; `partials` has kPartials doubles.
inline constexpr int kPartials = 1024;
inline constexpr std::int64_t kOrderedSumMax = 4096;
cudaError_t launch_add_squares(cudaStream_t stream, const Strided& target, const Strided& source,
                               double* partials);
cudaError_t launch_count_non_finite(cudaStream_t stream, const Strided& target,
                                    const Strided& source, double* partials);

struct AdamTensors {
  Strided parameter, grad, exp_avg, exp_avg_sq;  // dense
  Strided copy;                                  // dense, or of no elements
};
cudaError_t launch_adam(cudaStream_t stream, const AdamTensors& tensors, const AdamRule& rule);
struct SgdTensors {
  Strided parameter, grad, momentum_buffer;  // dense; no data without momentum
};
cudaError_t launch_sgd(cudaStream_t stream, const SgdTensors& tensors, const SgdRule& rule);

cudaError_t launch_unary(cudaStream_t stream, UnaryOp op, const Strided& out, const Strided& x);
cudaError_t launch_binary(cudaStream_t stream, BinaryOp op, const Strided& out, const Strided& a,
                          const Strided& b);

// out[i] = x[i], cut to a whole number.
cudaError_t launch_whole_numbers(cudaStream_t stream, std::int32_t* out, const Strided& x);

enum class Fold : std::uint8_t { sum, max };
// out[o] over all i of x[kept(o) + reduced(i)]: two views of one tensor. i runs from left to right.
cudaError_t launch_fold(cudaStream_t stream, Fold fold, const Strided& out, const Strided& kept,
                        const Strided& reduced);

// out = bias + a b, a matrix each of `batch`; each element one sum from left to right. A bias
// without data has to be the constant 0.
struct Product {
  Strided out, a, b, bias;  // [batch, m, n], [batch, m, k], [batch, k, n], [batch, m, n]
  bool has_bias = false;
};
cudaError_t launch_product(cudaStream_t stream, const Product& product);

}  // namespace zeroproof::cuda
