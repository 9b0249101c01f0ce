#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "engine/runtime/cuda/kernels/strided.h"

namespace zeroproof::cuda {

inline constexpr int kThreads = 256;

inline unsigned blocks_for(std::int64_t elements) {
  constexpr std::int64_t kBlocksMax = 1 << 16;  // threads go on in strides of the grid
  const std::int64_t blocks = (elements + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kBlocksMax ? blocks : kBlocksMax);
}

__device__ inline std::int64_t first_element() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t grid_stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

__device__ inline std::int64_t offset_of(const Strided& of, std::int64_t i) {
  if (of.dims == 1) return i * of.strides[0];
  std::int64_t offset = 0;
  for (int d = of.dims - 1; d >= 0; --d) {
    offset += (i % of.sizes[d]) * of.strides[d];
    i /= of.sizes[d];
  }
  return offset;
}

// To float so that a second rounding, to a type of fewer bits, is the only one that counts: what
// was cut off stays as the last bit (round to odd).
__device__ inline float odd_float(double value) {
  const float cut = __double2float_rz(value);
  if (static_cast<double>(cut) == value || isnan(value)) return cut;
  return __int_as_float(__float_as_int(cut) | 1);
}
__device__ inline __nv_bfloat16 to_bfloat16(double value) {
  return __float2bfloat16_rn(odd_float(value));
}
__device__ inline __half to_half(double value) {
  return __float2half_rn(odd_float(value));
}

// round_to of zeroproof/model/dtype.h, and what the update rules need besides.
struct DeviceRounding {
  DType dtype;

  __device__ double operator()(double value) const {
    switch (dtype) {
      case DType::float64:
        return value;
      case DType::float32:
        return static_cast<double>(static_cast<float>(value));
      case DType::bfloat16:
        return static_cast<double>(__bfloat162float(to_bfloat16(value)));
      case DType::float16:
        return static_cast<double>(__half2float(to_half(value)));
    }
    return value;
  }
  __device__ double root(double value) const { return (*this)(sqrt(value)); }
};

__device__ inline double load_at(const Strided& from, std::int64_t offset) {
  if (from.data == nullptr) return from.constant;
  switch (from.dtype) {
    case DType::float64:
      return static_cast<const double*>(from.data)[offset];
    case DType::float32:
      return static_cast<const float*>(from.data)[offset];
    case DType::bfloat16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(from.data)[offset]);
    case DType::float16:
      return __half2float(static_cast<const __half*>(from.data)[offset]);
  }
  return 0.0;
}
__device__ inline double load(const Strided& from, std::int64_t i) {
  return load_at(from, offset_of(from, i));
}

// Rounds once.
__device__ inline void store_at(const Strided& to, std::int64_t offset, double value) {
  switch (to.dtype) {
    case DType::float64:
      static_cast<double*>(to.data)[offset] = value;
      return;
    case DType::float32:
      static_cast<float*>(to.data)[offset] = static_cast<float>(value);
      return;
    case DType::bfloat16:
      static_cast<__nv_bfloat16*>(to.data)[offset] = to_bfloat16(value);
      return;
    case DType::float16:
      static_cast<__half*>(to.data)[offset] = to_half(value);
      return;
  }
}
__device__ inline void store(const Strided& to, std::int64_t i, double value) {
  store_at(to, offset_of(to, i), value);
}

}  // namespace zeroproof::cuda
