#pragma once

#include "engine/runtime/cuda/kernels/elements.cuh"

namespace zeroproof::cuda {

// Elements that a thread takes at once, in accesses of 16 bytes.
inline constexpr int kPack = 8;
template <class T>
struct alignas(16) Pack {
  T at[kPack];
};

template <class T>
__device__ inline double wide(T value) {
  return static_cast<double>(value);
}
template <>
__device__ inline double wide(__nv_bfloat16 value) {
  return static_cast<double>(__bfloat162float(value));
}

template <class T>
__device__ inline T narrow(double value) {
  return static_cast<T>(value);
}
template <>
__device__ inline __nv_bfloat16 narrow(double value) {
  return to_bfloat16(value);
}

template <class T>
constexpr DType dtype_of_type() {
  return sizeof(T) == 2 ? DType::bfloat16 : DType::float32;
}

// Dense, and where a pack begins.
template <class T>
inline bool has_packs(const Strided& of) {
  return of.data != nullptr && of.dims == 1 && of.strides[0] == 1 &&
         of.dtype == dtype_of_type<T>() &&
         reinterpret_cast<std::uintptr_t>(of.data) % alignof(Pack<T>) == 0;
}

template <class T>
__device__ inline Pack<T>& pack(const Strided& of, std::int64_t i) {
  return static_cast<Pack<T>*>(of.data)[i];
}

}  // namespace zeroproof::cuda
