#include "engine/runtime/cuda/kernels/elements.cuh"
#include "engine/runtime/cuda/kernels/launches.h"

namespace zeroproof::cuda {
namespace {

__device__ double folded(Fold fold, double total, double value) {
  if (fold == Fold::sum) return total + value;
  return value > total || isnan(value) ? value : total;
}

__global__ void fold_kernel(Fold fold, Strided out, Strided kept, Strided reduced) {
  for (std::int64_t o = first_element(); o < out.elements; o += grid_stride()) {
    const std::int64_t begin = offset_of(kept, o);
    double total = fold == Fold::sum ? 0.0 : -INFINITY;
    for (std::int64_t i = 0; i < reduced.elements; ++i)
      total = folded(fold, total, load_at(kept, begin + offset_of(reduced, i)));
    store(out, o, total);
  }
}

}  // namespace

cudaError_t launch_fold(cudaStream_t stream, Fold fold, const Strided& out, const Strided& kept,
                        const Strided& reduced) {
  if (out.elements == 0) return cudaSuccess;
  fold_kernel<<<blocks_for(out.elements), kThreads, 0, stream>>>(fold, out, kept, reduced);
  return cudaGetLastError();
}

}  // namespace zeroproof::cuda
