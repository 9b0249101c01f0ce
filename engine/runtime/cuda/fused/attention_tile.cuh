#pragma once

#include <cuda_bf16.h>

#include <cstdint>

// The pieces of the attention kernels: tiles of 64 rows x 64 bf16 in shared memory and products of
// a warp's 16 rows with them (mma.sync m16n8k16).
//
// A tile's row is 128 bytes, 8 chunks of 16; chunk c of row r lies at place c ^ (r % 8), so that
// the eight rows an ldmatrix reads lie in different banks.
//
// Fragments, of lane l: g = l / 4, t = l % 4.
//   accumulator of 16 x 8: {(g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)}
//   left operand, 16 x 16: pairs {(g, 2t), (g+8, 2t), (g, 2t+8), (g+8, 2t+8)}
// so two neighbouring accumulators (columns 0-7, 8-15), rounded, are one left operand.

namespace zeroproof::cuda {

constexpr int kTile = 64;      // rows of a tile and width of a head
constexpr int kTileWarps = 4;  // a warp has 16 rows
constexpr int kTileThreads = 32 * kTileWarps;
constexpr int kTileBytes = kTile * kTile * 2;

struct LeftFragment {  // 16 x 64, four steps of 16
  std::uint32_t words[4][4];
};

struct Accumulator {  // 16 x 64, eight columns of 8
  float v[8][4];
};

__device__ __forceinline__ void clear(Accumulator& acc) {
#pragma unroll
  for (int n = 0; n < 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) acc.v[n][i] = 0.0F;
  }
}

__device__ __forceinline__ std::uint32_t tile_address(std::uint32_t tile, int row, int chunk) {
  return tile + static_cast<std::uint32_t>(row * 128 + ((chunk ^ (row & 7)) << 4));
}

// Queues the copy of rows [first, first + 64) of a [seq, stride] matrix; rows past seq are zeros.
__device__ __forceinline__ void copy_tile(std::uint32_t tile, const std::uint16_t* source,
                                          std::int64_t stride, int first, int seq) {
#pragma unroll
  for (int i = 0; i < kTile * 8 / kTileThreads; ++i) {
    const int item = static_cast<int>(threadIdx.x) + i * kTileThreads;
    const int row = item / 8;
    const int chunk = item % 8;
    const bool is_inside = first + row < seq;
    const std::uint16_t* from = source + (is_inside ? first + row : 0) * stride + chunk * 8;
    const int bytes = is_inside ? 16 : 0;
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(tile_address(tile, row, chunk)),
        "l"(from), "r"(bytes)
        : "memory");
  }
}

__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}

template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ void load_matrices(std::uint32_t (&words)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address));
}

__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&words)[4],
                                                         std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(address));
}

__device__ __forceinline__ void multiply(float (&acc)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The warp's 16 rows of a tile, as a left operand.
__device__ __forceinline__ void load_left(LeftFragment& left, std::uint32_t tile, int warp) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp * 16 + lane % 16;
#pragma unroll
  for (int k = 0; k < 4; ++k)
    load_matrices(left.words[k], tile_address(tile, row, 2 * k + lane / 16));
}

// acc[16, 64] += left[16, 64] * tile^T: columns are the tile's rows.
__device__ __forceinline__ void multiply_by_rows(Accumulator& acc, const LeftFragment& left,
                                                 std::uint32_t tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < 4; ++n) {  // 16 rows of the tile: two columns of 8
    const int row = n * 16 + lane % 8 + (lane / 16) * 8;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      std::uint32_t b[4];
      load_matrices(b, tile_address(tile, row, 2 * k + lane / 8 % 2));
      multiply(acc.v[2 * n], left.words[k], b[0], b[1]);
      multiply(acc.v[2 * n + 1], left.words[k], b[2], b[3]);
    }
  }
}

// acc[16, 64] += left[16, 64] * tile: the sum runs over the tile's rows.
__device__ __forceinline__ void multiply_by_columns(Accumulator& acc, const LeftFragment& left,
                                                    std::uint32_t tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int row = k * 16 + lane % 16;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      std::uint32_t b[4];
      load_matrices_transposed(b, tile_address(tile, row, 2 * n + lane / 16));
      multiply(acc.v[2 * n], left.words[k], b[0], b[1]);
      multiply(acc.v[2 * n + 1], left.words[k], b[2], b[3]);
    }
  }
}

__device__ __forceinline__ std::uint32_t pack_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// Rounds an accumulator to bf16, ready to be the left operand of the next product.
__device__ __forceinline__ void round_to_left(LeftFragment& left, const Accumulator& acc) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    left.words[k][0] = pack_pair(acc.v[2 * k][0], acc.v[2 * k][1]);
    left.words[k][1] = pack_pair(acc.v[2 * k][2], acc.v[2 * k][3]);
    left.words[k][2] = pack_pair(acc.v[2 * k + 1][0], acc.v[2 * k + 1][1]);
    left.words[k][3] = pack_pair(acc.v[2 * k + 1][2], acc.v[2 * k + 1][3]);
  }
}

// Writes the warp's 16 rows times `factors` (rows g and g + 8), through its own rows of a tile so
// that global memory sees 16-byte stores. No other warp may use these rows.
__device__ __forceinline__ void store_rows(const Accumulator& acc, float factor0, float factor1,
                                           char* tile, std::uint16_t* target, std::int64_t stride,
                                           int rows_left) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  char* mine = tile + warp * 16 * 128;  // warp * 16 is a multiple of 8: the swizzle is unchanged
  const int g = lane / 4;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const int place = ((n ^ g) << 4) + lane % 4 * 4;
    *reinterpret_cast<std::uint32_t*>(mine + g * 128 + place) =
        pack_pair(acc.v[n][0] * factor0, acc.v[n][1] * factor0);
    *reinterpret_cast<std::uint32_t*>(mine + (g + 8) * 128 + place) =
        pack_pair(acc.v[n][2] * factor1, acc.v[n][3] * factor1);
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = i * 4 + lane / 8;
    const int chunk = lane % 8;
    if (row >= rows_left) continue;
    *reinterpret_cast<uint4*>(target + row * stride + chunk * 8) =
        *reinterpret_cast<const uint4*>(mine + row * 128 + ((chunk ^ (row & 7)) << 4));
  }
}

}  // namespace zeroproof::cuda
