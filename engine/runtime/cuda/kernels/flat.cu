#include <cmath>

#include "engine/runtime/cuda/kernels/elements.cuh"
#include "engine/runtime/cuda/kernels/launches.h"
#include "engine/runtime/cuda/kernels/vectors.cuh"

namespace zeroproof::cuda {
namespace {

// target[i] = value(target[i], source[i])
template <class Value>
__global__ void map_kernel(Strided target, Strided source, Value value) {
  for (std::int64_t i = first_element(); i < target.elements; i += grid_stride()) {
    const std::int64_t at = offset_of(target, i);
    const double old = Value::kReads ? load_at(target, at) : 0.0;
    store_at(target, at, value(old, load(source, i)));
  }
}

// The same of dense float32 and bfloat16, a pack at a time; what is left over by the first thread.
template <class T, class S, class Value>
__global__ void map_packs_kernel(Strided target, Strided source, Value value) {
  const std::int64_t packs = target.elements / kPack;
  for (std::int64_t i = first_element(); i < packs; i += grid_stride()) {
    const Pack<S> given = pack<S>(source, i);
    Pack<T> result;
    if constexpr (Value::kReads) result = pack<T>(target, i);
    for (int k = 0; k < kPack; ++k) {
      const double old = Value::kReads ? wide(result.at[k]) : 0.0;
      result.at[k] = narrow<T>(value(old, wide(given.at[k])));
    }
    pack<T>(target, i) = result;
  }
  if (first_element() != 0) return;
  for (std::int64_t i = kPack * packs; i < target.elements; ++i)
    store_at(target, i, value(Value::kReads ? load_at(target, i) : 0.0, load_at(source, i)));
}

struct Fill {
  static constexpr bool kReads = false;
  double number;
  __device__ double operator()(double, double) const { return number; }
};
struct Copy {
  static constexpr bool kReads = false;
  double factor;
  __device__ double operator()(double, double source) const { return source * factor; }
};
struct Add {
  static constexpr bool kReads = true;
  double factor;
  __device__ double operator()(double old, double source) const { return old + source * factor; }
};
struct Scale {
  static constexpr bool kReads = false;  // its source is its target
  double factor;
  __device__ double operator()(double, double old) const { return old * factor; }
};
struct ScaleBy {
  static constexpr bool kReads = false;
  const double* factor;
  __device__ double operator()(double, double old) const { return old * *factor; }
};
struct Divide {
  static constexpr bool kReads = false;
  double divisor;
  __device__ double operator()(double, double old) const { return old / divisor; }
};

template <class T, class S, class Value>
bool launch_packs(cudaStream_t stream, const Strided& target, const Strided& source, Value value) {
  if (!has_packs<T>(target) || !has_packs<S>(source)) return false;
  map_packs_kernel<T, S>
      <<<blocks_for(target.elements / kPack + 1), kThreads, 0, stream>>>(target, source, value);
  return true;
}

template <class Value>
cudaError_t launch_map(cudaStream_t stream, const Strided& target, const Strided& source,
                       Value value) {
  if (target.elements == 0) return cudaSuccess;
  const bool is_done = launch_packs<float, float>(stream, target, source, value) ||
                       launch_packs<float, __nv_bfloat16>(stream, target, source, value) ||
                       launch_packs<__nv_bfloat16, float>(stream, target, source, value) ||
                       launch_packs<__nv_bfloat16, __nv_bfloat16>(stream, target, source, value);
  if (!is_done)
    map_kernel<<<blocks_for(target.elements), kThreads, 0, stream>>>(target, source, value);
  return cudaGetLastError();
}

bool is_plain_copy(const Strided& target, const Strided& source, double factor) {
  return factor == 1.0 && target.dtype == source.dtype && source.data != nullptr &&
         target.dims == 1 && source.dims == 1 && target.strides[0] == 1 && source.strides[0] == 1;
}

__global__ void clip_factor_kernel(double* factor, const double* squares, ClipRule rule) {
  *factor = 1.0 / divisor_of(rule, norm_of_squares(*squares));
}

struct Square {
  __device__ double operator()(double x) const { return x * x; }
};
struct IsNotFinite {
  __device__ double operator()(double x) const { return isfinite(x) ? 0.0 : 1.0; }
};

template <class Term>
__global__ void ordered_sum_kernel(Strided target, Strided source, Term term) {
  double total = load(target, 0);
  for (std::int64_t i = 0; i < source.elements; ++i) total += term(load(source, i));
  store(target, 0, total);
}

__device__ double block_sum(double mine) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

template <class Term>
__global__ void partial_sum_kernel(double* partials, Strided source, Term term) {
  double mine = 0.0;
  for (std::int64_t i = first_element(); i < source.elements; i += grid_stride())
    mine += term(load(source, i));
  const double sum = block_sum(mine);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

template <class S, class Term>
__global__ void partial_sum_packs_kernel(double* partials, Strided source, Term term) {
  const std::int64_t packs = source.elements / kPack;
  double mine = 0.0;
  for (std::int64_t i = first_element(); i < packs; i += grid_stride()) {
    const Pack<S> given = pack<S>(source, i);
    for (int k = 0; k < kPack; ++k) mine += term(wide(given.at[k]));
  }
  if (first_element() == 0)
    for (std::int64_t i = kPack * packs; i < source.elements; ++i) mine += term(load(source, i));
  const double sum = block_sum(mine);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

template <class S, class Term>
bool launch_partial_packs(cudaStream_t stream, const Strided& source, double* partials, Term term) {
  if (!has_packs<S>(source)) return false;
  partial_sum_packs_kernel<S><<<kPartials, kThreads, 0, stream>>>(partials, source, term);
  return true;
}

__global__ void add_partials_kernel(Strided target, const double* partials) {
  double mine = 0.0;
  for (int i = threadIdx.x; i < kPartials; i += kThreads) mine += partials[i];
  const double sum = block_sum(mine);
  if (threadIdx.x == 0) store(target, 0, load(target, 0) + sum);
}

template <class Term>
cudaError_t launch_sum(cudaStream_t stream, const Strided& target, const Strided& source,
                       double* partials, Term term) {
  if (source.elements == 0) return cudaSuccess;
  if (source.elements <= kOrderedSumMax) {
    ordered_sum_kernel<<<1, 1, 0, stream>>>(target, source, term);
    return cudaGetLastError();
  }
  if (!launch_partial_packs<float>(stream, source, partials, term) &&
      !launch_partial_packs<__nv_bfloat16>(stream, source, partials, term))
    partial_sum_kernel<<<kPartials, kThreads, 0, stream>>>(partials, source, term);
  add_partials_kernel<<<1, kThreads, 0, stream>>>(target, partials);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_fill(cudaStream_t stream, const Strided& target, double value) {
  return launch_map(stream, target, target, Fill{value});
}
cudaError_t launch_copy(cudaStream_t stream, const Strided& target, const Strided& source,
                        double factor) {
  if (target.elements > 0 && is_plain_copy(target, source, factor)) {
    const auto bytes = static_cast<std::size_t>(target.elements * item_bytes(target.dtype));
    return cudaMemcpyAsync(target.data, source.data, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  return launch_map(stream, target, source, Copy{factor});
}
cudaError_t launch_add(cudaStream_t stream, const Strided& target, const Strided& source,
                       double factor) {
  return launch_map(stream, target, source, Add{factor});
}
cudaError_t launch_scale(cudaStream_t stream, const Strided& target, double factor) {
  return launch_map(stream, target, target, Scale{factor});
}
cudaError_t launch_scale_by(cudaStream_t stream, const Strided& target, const double* factor) {
  return launch_map(stream, target, target, ScaleBy{factor});
}
cudaError_t launch_clip_factor(cudaStream_t stream, double* factor, const double* squares,
                               const ClipRule& rule) {
  clip_factor_kernel<<<1, 1, 0, stream>>>(factor, squares, rule);
  return cudaGetLastError();
}
// A division by a power of two is a product, with the same bits: the memory traffic does not hide
// divisions in double.
cudaError_t launch_divide(cudaStream_t stream, const Strided& target, double divisor) {
  int exponent = 0;
  if (std::frexp(divisor, &exponent) == 0.5 && std::abs(exponent) < 64)
    return launch_scale(stream, target, 1.0 / divisor);
  return launch_map(stream, target, target, Divide{divisor});
}

cudaError_t launch_add_squares(cudaStream_t stream, const Strided& target, const Strided& source,
                               double* partials) {
  return launch_sum(stream, target, source, partials, Square{});
}
cudaError_t launch_count_non_finite(cudaStream_t stream, const Strided& target,
                                    const Strided& source, double* partials) {
  return launch_sum(stream, target, source, partials, IsNotFinite{});
}

}  // namespace zeroproof::cuda
