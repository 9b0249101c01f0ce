#include "engine/runtime/cuda/kernels/elements.cuh"
#include "engine/runtime/cuda/kernels/launches.h"

namespace zeroproof::cuda {
namespace {

// A sum in `Wide` that is rounded to T has the bits of one in double that is: twice the bits of T
// and two more make the first rounding harmless.
template <class T>
struct Element {
  using Wide = T;
  static __device__ T widen(T value) { return value; }
  static __device__ T round(T value) { return value; }
  static __device__ T narrow(double value) { return static_cast<T>(value); }
};
template <>
struct Element<__nv_bfloat16> {
  using Wide = float;
  static __device__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
  static __device__ __nv_bfloat16 round(float value) { return __float2bfloat16_rn(value); }
  static __device__ __nv_bfloat16 narrow(double value) { return to_bfloat16(value); }
};
template <>
struct Element<__half> {
  using Wide = float;
  static __device__ float widen(__half value) { return __half2float(value); }
  static __device__ __half round(float value) { return __float2half_rn(value); }
  static __device__ __half narrow(double value) { return to_half(value); }
};

template <class T>
struct Sum {
  static __device__ T combine(T total, T x) {
    return Element<T>::round(Element<T>::widen(total) + Element<T>::widen(x));
  }
  static __device__ T finish(T total, int) { return total; }
};
template <class T>
struct Average : Sum<T> {
  static __device__ T finish(T total, int ranks) {
    return Element<T>::narrow(static_cast<double>(Element<T>::widen(total)) / ranks);
  }
};
template <class T>
struct Maximum {
  static __device__ T combine(T total, T x) {
    const auto wide = Element<T>::widen(x);
    return wide > Element<T>::widen(total) || isnan(wide) ? x : total;
  }
  static __device__ T finish(T total, int) { return total; }
};

constexpr int kInFlight = 4;  // inputs that are loaded before the first is used

template <class T>
struct alignas(16) Vector {
  static constexpr int kSize = 16 / sizeof(T);
  T at[kSize];
};

// Element i of every input, a vector at a time, in the order of the ranks.
template <class Rule, class V>
__device__ V summed(const RankSum& of, std::int64_t i) {
  V total = static_cast<const V*>(of.inputs[0])[i];
  for (int first = 1; first < of.ranks; first += kInFlight) {
    V given[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (first + k < of.ranks) given[k] = static_cast<const V*>(of.inputs[first + k])[i];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      if (first + k >= of.ranks) break;
#pragma unroll
      for (int e = 0; e < V::kSize; ++e) total.at[e] = Rule::combine(total.at[e], given[k].at[e]);
    }
  }
#pragma unroll
  for (int e = 0; e < V::kSize; ++e) total.at[e] = Rule::finish(total.at[e], of.ranks);
  return total;
}

template <class T>
struct Scalar {
  static constexpr int kSize = 1;
  T at[1];
};

template <class Rule, class T>
__global__ void rank_sum_kernel(const __grid_constant__ RankSum of, std::int64_t vectors) {
  for (std::int64_t i = first_element(); i < vectors; i += grid_stride())
    static_cast<Vector<T>*>(of.output)[i] = summed<Rule, Vector<T>>(of, i);
  for (std::int64_t i = vectors * Vector<T>::kSize + first_element(); i < of.elements;
       i += grid_stride())
    static_cast<Scalar<T>*>(of.output)[i] = summed<Rule, Scalar<T>>(of, i);
}

bool is_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

template <class Rule, class T>
cudaError_t launch_rule(cudaStream_t stream, const RankSum& of) {
  bool are_aligned = is_aligned(of.output);
  for (int rank = 0; rank < of.ranks; ++rank)
    are_aligned = are_aligned && is_aligned(of.inputs[static_cast<std::size_t>(rank)]);
  const std::int64_t vectors = are_aligned ? of.elements / Vector<T>::kSize : 0;
  const std::int64_t work = vectors + (of.elements - vectors * Vector<T>::kSize);
  rank_sum_kernel<Rule, T><<<blocks_for(work), kThreads, 0, stream>>>(of, vectors);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_dtype(cudaStream_t stream, const RankSum& of) {
  switch (of.reduce) {
    case ReduceOp::sum:
      return launch_rule<Sum<T>, T>(stream, of);
    case ReduceOp::avg:
      return launch_rule<Average<T>, T>(stream, of);
    case ReduceOp::max:
      return launch_rule<Maximum<T>, T>(stream, of);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_rank_sum(cudaStream_t stream, const RankSum& of) {
  if (of.elements == 0) return cudaSuccess;
  switch (of.dtype) {
    case DType::float64:
      return launch_dtype<double>(stream, of);
    case DType::float32:
      return launch_dtype<float>(stream, of);
    case DType::bfloat16:
      return launch_dtype<__nv_bfloat16>(stream, of);
    case DType::float16:
      return launch_dtype<__half>(stream, of);
  }
  return cudaErrorInvalidValue;
}

}  // namespace zeroproof::cuda
