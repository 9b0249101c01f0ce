#include "engine/runtime/cuda/fused/rms_norm.h"
#include "engine/runtime/cuda/fused/vectors.cuh"

// Bytes, rows 8192 x width 1024 (M267 at S 1024, batch 8), 16.8 MB a tensor:
//   forward   2 reads + 2 writes = 67 MB: 15.6 us at 4.3 TB/s
//   backward  3 reads + 1 write + 2 MB of partials both ways = 71 MB: 16.6 us
// 49 norms an iteration: 1.6 ms. About 10 flops a value, far under the fp32 rate.

namespace zeroproof::cuda {
namespace {

constexpr int kVectorsPerThread = 4;  // of 8 values
constexpr int kBlockThreads = 128;
constexpr int kPartialRowsMax = 512;  // not the device's number: bits must not depend on it
constexpr int kSumWarps = 32;         // of a block that adds partial rows

// Sums over the threads of one row: a warp, or all warps of the block.
template <int kThreads>
__device__ __forceinline__ float row_sum(float value, float* scratch) {
  value = warp_sum(value);
  if constexpr (kThreads > 32) {
    constexpr int kWarps = kThreads / 32;
    __syncthreads();  // the previous use of scratch is over
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0F;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) value += scratch[i];
  }
  return value;
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads > kBlockThreads ? kThreads : kBlockThreads)
    forward_kernel(RmsNormForward args) {
  __shared__ float scratch[32];
  constexpr int kRowsPerBlock = kThreads >= kBlockThreads ? 1 : kBlockThreads / kThreads;
  const int lane = threadIdx.x % kThreads;
  const int row = blockIdx.x * kRowsPerBlock + threadIdx.x / kThreads;
  if (row >= args.rows) return;  // whole rows leave: with several rows a block, a row is a warp
  const std::int64_t base = static_cast<std::int64_t>(row) * args.width;
  const int vectors = args.width / 8;

  Pack8 packs[kVectorsPerThread];
  Pack8 others[kVectorsPerThread];
#pragma unroll
  for (int i = 0; i < kVectorsPerThread; ++i) {
    const int vector = lane + i * kThreads;
    if (vector >= vectors) continue;
    packs[i] = load_pack(args.x + base + vector * 8);
    if (args.residual != nullptr) others[i] = load_pack(args.residual + base + vector * 8);
  }
  float squares = 0.0F;
#pragma unroll
  for (int i = 0; i < kVectorsPerThread; ++i) {
    const int vector = lane + i * kThreads;
    if (vector >= vectors) continue;
    if (args.residual != nullptr) {
      Float8 values = widen(packs[i]);
      const Float8 added = widen(others[i]);
#pragma unroll
      for (int j = 0; j < 8; ++j) values.v[j] += added.v[j];
      packs[i] = narrow(values);
      store_pack(args.sum + base + vector * 8, packs[i]);
    }
    const Float8 values = widen(packs[i]);
#pragma unroll
    for (int j = 0; j < 8; ++j) squares += values.v[j] * values.v[j];
  }
  squares = row_sum<kThreads>(squares, scratch);
  const float inv_rms = rsqrtf(squares / static_cast<float>(args.width) + args.eps);
  if (lane == 0) args.inv_rms[row] = inv_rms;
#pragma unroll
  for (int i = 0; i < kVectorsPerThread; ++i) {
    const int vector = lane + i * kThreads;
    if (vector >= vectors) continue;
    Float8 values = widen(packs[i]);
    const Float8 weight = widen(load_pack(args.weight + vector * 8));
#pragma unroll
    for (int j = 0; j < 8; ++j) values.v[j] = values.v[j] * inv_rms * weight.v[j];
    store_pack(args.y + base + vector * 8, narrow(values));
  }
}

// Every block takes the rows blockIdx, blockIdx + grid, ...; a thread keeps its columns' part of
// dweight in registers. Blocks whose rows are warps add them through shared memory, in order.
template <int kThreads>
__global__ void __launch_bounds__(kThreads > kBlockThreads ? kThreads : kBlockThreads,
                                  kThreads > kBlockThreads ? 2 : 4)
    backward_kernel(RmsNormBackward args) {
  __shared__ float scratch[32];
  constexpr int kRowsPerBlock = kThreads >= kBlockThreads ? 1 : kBlockThreads / kThreads;
  const int lane = threadIdx.x % kThreads;
  const int slot = threadIdx.x / kThreads;
  const int vectors = args.width / 8;

  Float8 dweight[kVectorsPerThread];
#pragma unroll
  for (int i = 0; i < kVectorsPerThread; ++i) dweight[i] = zeros8();
  for (int row = blockIdx.x * kRowsPerBlock + slot; row < args.rows;
       row += gridDim.x * kRowsPerBlock) {
    const std::int64_t base = static_cast<std::int64_t>(row) * args.width;
    Pack8 grads[kVectorsPerThread];
    Pack8 sums[kVectorsPerThread];
    Pack8 past[kVectorsPerThread];
#pragma unroll
    for (int i = 0; i < kVectorsPerThread; ++i) {
      const int vector = lane + i * kThreads;
      if (vector >= vectors) continue;
      grads[i] = load_pack(args.dy + base + vector * 8);
      sums[i] = load_pack(args.sum + base + vector * 8);
      if (args.dresidual != nullptr) past[i] = load_pack(args.dresidual + base + vector * 8);
    }
    const float inv_rms = args.inv_rms[row];
    float dot = 0.0F;
#pragma unroll
    for (int i = 0; i < kVectorsPerThread; ++i) {
      const int vector = lane + i * kThreads;
      if (vector >= vectors) continue;
      const Float8 grad = widen(grads[i]);
      const Float8 sum = widen(sums[i]);
      const Float8 weight = widen(load_pack(args.weight + vector * 8));  // from L1
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float normalised = sum.v[j] * inv_rms;
        dot += grad.v[j] * weight.v[j] * normalised;
        dweight[i].v[j] += grad.v[j] * normalised;
      }
    }
    dot = row_sum<kThreads>(dot, scratch) / static_cast<float>(args.width);
    const float slope = inv_rms * inv_rms * dot;
#pragma unroll
    for (int i = 0; i < kVectorsPerThread; ++i) {
      const int vector = lane + i * kThreads;
      if (vector >= vectors) continue;
      const Float8 grad = widen(grads[i]);
      const Float8 sum = widen(sums[i]);
      const Float8 weight = widen(load_pack(args.weight + vector * 8));  // from L1
      Float8 out = args.dresidual != nullptr ? widen(past[i]) : zeros8();
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        out.v[j] += inv_rms * grad.v[j] * weight.v[j] - slope * sum.v[j];
      }
      store_pack(args.dx + base + vector * 8, narrow(out));
    }
  }
  float* partial = args.partials + static_cast<std::int64_t>(blockIdx.x) * args.width;
  if constexpr (kRowsPerBlock == 1) {
#pragma unroll
    for (int i = 0; i < kVectorsPerThread; ++i) {
      const int vector = lane + i * kThreads;
      if (vector >= vectors) continue;
      float4* target = reinterpret_cast<float4*>(partial + vector * 8);
      const float* v = dweight[i].v;
      target[0] = make_float4(v[0], v[1], v[2], v[3]);
      target[1] = make_float4(v[4], v[5], v[6], v[7]);
    }
  } else {
    // [slot][value of a vector][vector]: neighbouring lanes write neighbouring words.
    __shared__ float sums[kRowsPerBlock][8][kThreads];
#pragma unroll
    for (int i = 0; i < kVectorsPerThread; ++i) {
      __syncthreads();
#pragma unroll
      for (int j = 0; j < 8; ++j) sums[slot][j][lane] = dweight[i].v[j];
      __syncthreads();
      for (int k = threadIdx.x; k < 8 * kThreads; k += kBlockThreads) {
        const int vector = k / 8 + i * kThreads;
        float total = 0.0F;
#pragma unroll
        for (int s = 0; s < kRowsPerBlock; ++s) total += sums[s][k % 8][k / 8];
        if (vector < vectors) partial[vector * 8 + k % 8] = total;
      }
    }
  }
}

// A block owns 32 columns: its warps each add every kSumWarps-th partial row, then these sums in
// order.
__global__ void __launch_bounds__(32 * kSumWarps)
    dweight_kernel(RmsNormBackward args, int partial_rows) {
  __shared__ float sums[kSumWarps][32];
  const int column = blockIdx.x * 32 + threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  float total = 0.0F;
  if (column < args.width) {
#pragma unroll 16
    for (int row = warp; row < partial_rows; row += kSumWarps) {
      total += args.partials[static_cast<std::int64_t>(row) * args.width + column];
    }
  }
  sums[warp][threadIdx.x % 32] = total;
  __syncthreads();
  if (warp != 0 || column >= args.width) return;
  total = 0.0F;
#pragma unroll
  for (int i = 0; i < kSumWarps; ++i) total += sums[i][threadIdx.x];
  __nv_bfloat16* target = reinterpret_cast<__nv_bfloat16*>(args.dweight) + column;
  if (args.is_accumulating) total += __bfloat162float(*target);
  *target = __float2bfloat16_rn(total);
}

bool is_supported(int rows, int width) {
  return rows > 0 && width > 0 && width % 8 == 0 && width <= 8192;
}

int threads_per_row(int width) {
  return width <= 1024 ? 32 : width <= 4096 ? 128 : 256;
}

int partial_rows(int rows, int width) {
  const int rows_per_block = threads_per_row(width) == 32 ? kBlockThreads / 32 : 1;
  const int blocks = (rows + rows_per_block - 1) / rows_per_block;
  return blocks < kPartialRowsMax ? blocks : kPartialRowsMax;
}

}  // namespace

cudaError_t rms_norm_forward(const RmsNormForward& args, cudaStream_t stream) {
  if (!is_supported(args.rows, args.width)) return cudaErrorInvalidValue;
  switch (threads_per_row(args.width)) {
    case 32:
      forward_kernel<32><<<(args.rows + 3) / 4, kBlockThreads, 0, stream>>>(args);
      break;
    case 128:
      forward_kernel<128><<<args.rows, 128, 0, stream>>>(args);
      break;
    default:
      forward_kernel<256><<<args.rows, 256, 0, stream>>>(args);
  }
  return cudaGetLastError();
}

std::int64_t rms_norm_partial_floats(int rows, int width) {
  return static_cast<std::int64_t>(partial_rows(rows, width)) * width;
}

cudaError_t rms_norm_backward(const RmsNormBackward& args, cudaStream_t stream) {
  if (!is_supported(args.rows, args.width)) return cudaErrorInvalidValue;
  const int blocks = partial_rows(args.rows, args.width);
  switch (threads_per_row(args.width)) {
    case 32:
      backward_kernel<32><<<blocks, kBlockThreads, 0, stream>>>(args);
      break;
    case 128:
      backward_kernel<128><<<blocks, 128, 0, stream>>>(args);
      break;
    default:
      backward_kernel<256><<<blocks, 256, 0, stream>>>(args);
  }
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  dweight_kernel<<<(args.width + 31) / 32, 32 * kSumWarps, 0, stream>>>(args, blocks);
  return cudaGetLastError();
}

}  // namespace zeroproof::cuda
