#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace zeroproof::cuda {

// Eight bfloat16 that move as one 16-byte access.
struct alignas(16) Pack8 {
  __nv_bfloat162 pairs[4];
};

struct Float8 {
  float v[8];
};

__device__ __forceinline__ Pack8 load_pack(const std::uint16_t* source) {
  const uint4 bits = *reinterpret_cast<const uint4*>(source);
  Pack8 pack;
  *reinterpret_cast<uint4*>(&pack) = bits;
  return pack;
}

// For data read once: it should not push anything else out of the caches.
__device__ __forceinline__ Pack8 load_pack_once(const std::uint16_t* source) {
  const uint4 bits = __ldcs(reinterpret_cast<const uint4*>(source));
  Pack8 pack;
  *reinterpret_cast<uint4*>(&pack) = bits;
  return pack;
}

__device__ __forceinline__ void store_pack(std::uint16_t* target, const Pack8& pack) {
  *reinterpret_cast<uint4*>(target) = *reinterpret_cast<const uint4*>(&pack);
}

__device__ __forceinline__ Float8 widen(const Pack8& pack) {
  Float8 out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __bfloat1622float2(pack.pairs[i]);
    out.v[2 * i] = pair.x;
    out.v[2 * i + 1] = pair.y;
  }
  return out;
}

__device__ __forceinline__ Pack8 narrow(const Float8& values) {
  Pack8 pack;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pack.pairs[i] = __floats2bfloat162_rn(values.v[2 * i], values.v[2 * i + 1]);
  }
  return pack;
}

__device__ __forceinline__ Float8 zeros8() {
  Float8 out;
#pragma unroll
  for (int i = 0; i < 8; ++i) out.v[i] = 0.0F;
  return out;
}

// The same tree in every lane, so every lane holds the same bits.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffU, value, offset);
  }
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, offset));
  }
  return value;
}

}  // namespace zeroproof::cuda
