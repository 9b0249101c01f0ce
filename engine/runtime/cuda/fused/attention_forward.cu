#include "engine/runtime/cuda/fused/attention.h"
#include "engine/runtime/cuda/fused/attention_tile.cuh"

// Flops, batch 8, 16 heads, S 1024, causal: 2 products x 2 x 128 x 1024^2 / 2 x 64 = 17.2 GFLOP a
// layer (+ half a tile of diagonal); mma.sync reaches about half of wgmma's 790 TFLOP/s: 17.2 / 300
// = 57 us a layer, 1.4 ms for 24. Bytes: 4 x 16.8 MB = 15.6 us. One exponential a score: 67 M of
// them / 4.2 T/s = 16 us, beside the products.

namespace zeroproof::cuda {
namespace {

constexpr float kScaleLog2 = 0.125F * 1.4426950408889634F;  // scores in powers of two
constexpr float kLn2 = 0.6931471805599453F;

__device__ __forceinline__ float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffU, value, 2));
}

__device__ __forceinline__ float quad_sum(float value) {
  value += __shfl_xor_sync(0xffffffffU, value, 1);
  return value + __shfl_xor_sync(0xffffffffU, value, 2);
}

// Scores past the diagonal, or past the end, become -inf. Row r of the tile is query first_q + r.
__device__ __forceinline__ void mask(Accumulator& scores, int row, int first_k, int seq) {
  const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = first_k + n * 8 + 2 * t + i % 2;
      if (column > row + i / 2 * 8 || column >= seq) scores.v[n][i] = -INFINITY;
    }
  }
}

// Keeps out = sum(e^(score - max) * v) and sum for the greatest score so far; scores become
// weights.
struct Running {
  float max[2];
  float sum[2];
};

__device__ __forceinline__ void absorb(Running& running, Accumulator& scores, Accumulator& out) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float max = running.max[half];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      max = fmaxf(max, fmaxf(scores.v[n][2 * half], scores.v[n][2 * half + 1]));
    }
    max = quad_max(max);  // finite: the diagonal is never masked, and comes last
    const float shift = max == -INFINITY ? 0.0F : max * kScaleLog2;
    const float correction = exp2f(running.max[half] * kScaleLog2 - shift);
    float sum = 0.0F;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        scores.v[n][i] = exp2f(scores.v[n][i] * kScaleLog2 - shift);
        sum += scores.v[n][i];
        out.v[n][i] *= correction;
      }
    }
    running.sum[half] = running.sum[half] * correction + sum;
    running.max[half] = max;
  }
}

__global__ void __launch_bounds__(kTileThreads)
    forward_kernel(AttentionShape shape, AttentionForward args) {
  __shared__ __align__(128) char tiles[5][kTileBytes];  // q, then k and v twice
  const int query_tiles = (shape.seq + kTile - 1) / kTile;
  const int tile = query_tiles - 1 - static_cast<int>(blockIdx.x);  // long ones first
  const int batch = static_cast<int>(blockIdx.y) / shape.heads;
  const int head = static_cast<int>(blockIdx.y) % shape.heads;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t token = static_cast<std::int64_t>(batch) * shape.seq;
  const Bf16* q = args.q + token * shape.q_stride + head * kTile;
  const Bf16* k = args.k + token * shape.q_stride + head * kTile;
  const Bf16* v = args.v + token * shape.v_stride + head * kTile;
  const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(tiles));
  const auto k_tile = [base](int step) { return base + (1 + step % 2 * 2) * kTileBytes; };

  copy_tile(base, q, shape.q_stride, tile * kTile, shape.seq);
  copy_tile(k_tile(0), k, shape.q_stride, 0, shape.seq);
  copy_tile(k_tile(0) + kTileBytes, v, shape.v_stride, 0, shape.seq);
  commit_copies();

  const int row = tile * kTile + warp * 16 + lane / 4;
  LeftFragment queries;
  Accumulator out;
  clear(out);
  Running running = {{-INFINITY, -INFINITY}, {0.0F, 0.0F}};
  for (int step = 0; step <= tile; ++step) {
    if (step < tile) {
      copy_tile(k_tile(step + 1), k, shape.q_stride, (step + 1) * kTile, shape.seq);
      copy_tile(k_tile(step + 1) + kTileBytes, v, shape.v_stride, (step + 1) * kTile, shape.seq);
    }
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    if (step == 0) load_left(queries, base, warp);
    Accumulator scores;
    clear(scores);
    multiply_by_rows(scores, queries, k_tile(step));
    if (step == tile) mask(scores, row, step * kTile, shape.seq);
    absorb(running, scores, out);
    LeftFragment weights;
    round_to_left(weights, scores);
    multiply_by_columns(out, weights, k_tile(step) + kTileBytes);
    __syncthreads();  // the next copies go over this step's tiles
  }
  const float sum0 = quad_sum(running.sum[0]);
  const float sum1 = quad_sum(running.sum[1]);
  float* log_sums = args.log_sums + static_cast<std::int64_t>(blockIdx.y) * shape.seq;
  if (lane % 4 == 0) {
    if (row < shape.seq) log_sums[row] = running.max[0] * 0.125F + kLn2 * log2f(sum0);
    if (row + 8 < shape.seq) log_sums[row + 8] = running.max[1] * 0.125F + kLn2 * log2f(sum1);
  }
  const int first = tile * kTile + warp * 16;
  store_rows(out, 1.0F / sum0, 1.0F / sum1, tiles[0],
             args.out + (token + first) * shape.out_stride + head * kTile, shape.out_stride,
             shape.seq - first);
}

bool is_supported(const AttentionShape& s) {
  return s.batch > 0 && s.heads > 0 && s.seq > 0 && s.q_stride % 8 == 0 && s.v_stride % 8 == 0 &&
         s.out_stride % 8 == 0 && static_cast<std::int64_t>(s.batch) * s.heads <= 65535;
}

}  // namespace

cudaError_t attention_forward(const AttentionShape& shape, const AttentionForward& args,
                              cudaStream_t stream) {
  if (!is_supported(shape)) return cudaErrorInvalidValue;
  const dim3 grid(static_cast<unsigned>((shape.seq + kTile - 1) / kTile),
                  static_cast<unsigned>(shape.batch * shape.heads));
  forward_kernel<<<grid, kTileThreads, 0, stream>>>(shape, args);
  return cudaGetLastError();
}

}  // namespace zeroproof::cuda
