// SPDX-License-Identifier: Apache-2.0
// Tiles of fused attention: rows of one head in shared memory, and the
// fragments that a warp loads from them (mma.cuh has their layouts).
//
// 16-byte chunk number c of a row is stored at c ^ (row % 8), so that the eight
// rows of an ldmatrix are in different banks.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_TILE_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_TILE_CUH_

#include "calibrate/gpu/kernels/mma.cuh"

namespace weir::calibrate {

struct AttentionShape {
  int sequence_length;
  int sequences, heads, kv_heads;
  float scale;  // factor on the scores
  bool causal;
};

// Rows of one head of one sequence in a packed tensor.
template <typename T>
struct HeadRows {
  T* first;
  int stride;  // elements

  __device__ __forceinline__ T* row(int i) const {
    return first + static_cast<int64_t>(i) * stride;
  }
};

// `column_head`: index among the packed heads: queries, then keys, then values.
template <int kHeadSize, typename T>
__device__ __forceinline__ HeadRows<T> RowsOf(T* tensor, int sequence,
                                              int sequence_length,
                                              int column_head,
                                              int num_column_heads) {
  const int stride = num_column_heads * kHeadSize;
  const int64_t token = static_cast<int64_t>(sequence) * sequence_length;
  return {tensor + token * stride + column_head * kHeadSize, stride};
}

template <int kHeadSize>
constexpr int kRowBytes = kHeadSize * 2;

template <int kHeadSize>
__device__ __forceinline__ int TileByte(int row, int chunk) {
  return row * kRowBytes<kHeadSize> + ((chunk ^ (row % 8)) << 4);
}

// Returns a value that the compiler must not compute in advance: keeping eight
// addresses from one tile to the next would take eight registers from the sums.
__device__ __forceinline__ int Opaque(int x) {
#ifdef __CUDACC__
  asm volatile("" : "+r"(x));
#endif
  return x;
}

// Starts copying rows [begin, begin + kRows) to `tile`, with zeros from row
// `end` on.
template <int kHeadSize, int kRows, int kThreads, typename Half>
__device__ __forceinline__ void CopyTile(SharedAddress tile,
                                         HeadRows<const Half> rows, int begin,
                                         int end) {
  constexpr int kChunks = kHeadSize / kVector;
  constexpr int kStep = kThreads / kChunks;  // rows
  static_assert(kRows % kStep == 0 && kStep % 8 == 0);
  const int thread = Opaque(static_cast<int>(threadIdx.x));
  const int row = thread / kChunks, chunk = thread % kChunks;
  const SharedAddress to = tile + TileByte<kHeadSize>(row, chunk);
  const Half* from = rows.row(begin + row) + chunk * kVector;
#pragma unroll
  for (int i = 0; i < kRows; i += kStep) {
    CopyAsync<16>(to + i * kRowBytes<kHeadSize>, from, begin + row + i < end);
    from += static_cast<int64_t>(kStep) * rows.stride;
  }
}

__device__ __forceinline__ int Lane() {
  return static_cast<int>(threadIdx.x) % kWarpSize;
}

// Byte offset of a lane's row of an ldmatrix. The k-th 16 columns are at this
// offset ^ 32 k, since the swizzle is an XOR too.
template <int kHeadSize>
struct LaneBytes {
  int a, b;

  __device__ __forceinline__ LaneBytes() {
    const int lane = Lane();
    a = TileByte<kHeadSize>(lane % 16, lane / 16);
    b = TileByte<kHeadSize>(lane / 16 * 8 + lane % 8, lane / 8 % 2);
  }
};

// d[kMTiles x 16 rows of `a`, kColumns rows of `b`] += a b^T over the head.
template <typename Half, int kHeadSize, int kMTiles, int kColumns>
__device__ __forceinline__ void MultiplyRows(
    float (&d)[kMTiles][kColumns / 8][4], SharedAddress a_rows,
    SharedAddress b_rows, const LaneBytes<kHeadSize>& lane) {
  const int lane_a = Opaque(lane.a), lane_b = Opaque(lane.b);
#pragma unroll 4
  for (int k = 0; k < kHeadSize / 16; ++k) {
    uint32_t a[kMTiles][4];
#pragma unroll
    for (int i = 0; i < kMTiles; ++i) {
      LoadMatrix4(a[i],
                  a_rows + (lane_a ^ 32 * k) + 16 * i * kRowBytes<kHeadSize>);
    }
#pragma unroll
    for (int n = 0; n < kColumns / 16; ++n) {
      uint32_t b[4];
      LoadMatrix4(b,
                  b_rows + (lane_b ^ 32 * k) + 16 * n * kRowBytes<kHeadSize>);
#pragma unroll
      for (int i = 0; i < kMTiles; ++i) {
        Mma<Half>(d[i][2 * n], a[i], b[0], b[1]);
        Mma<Half>(d[i][2 * n + 1], a[i], b[2], b[3]);
      }
    }
  }
}

// d[kMTiles x 16, head] += x[kMTiles x 16, kInner] rows[kInner, head], where x
// are fp32 sums of earlier products, rounded here.
template <typename Half, int kHeadSize, int kMTiles, int kInner>
__device__ __forceinline__ void MultiplySums(
    float (&d)[kMTiles][kHeadSize / 8][4],
    const float (&x)[kMTiles][kInner / 8][4], SharedAddress rows,
    const LaneBytes<kHeadSize>& lane) {
  const int lane_a = Opaque(lane.a);
#pragma unroll
  for (int k = 0; k < kInner / 16; ++k) {
    uint32_t a[kMTiles][4];
#pragma unroll
    for (int i = 0; i < kMTiles; ++i) {
      const float(&left)[4] = x[i][2 * k], (&right)[4] = x[i][2 * k + 1];
      a[i][0] = Pair<Half>::Pack(left[0], left[1]);
      a[i][1] = Pair<Half>::Pack(left[2], left[3]);
      a[i][2] = Pair<Half>::Pack(right[0], right[1]);
      a[i][3] = Pair<Half>::Pack(right[2], right[3]);
    }
#pragma unroll
    for (int n = 0; n < kHeadSize / 16; ++n) {
      uint32_t b[4];
      LoadMatrix4Transposed(
          b, rows + (lane_a ^ 32 * n) + 16 * k * kRowBytes<kHeadSize>);
#pragma unroll
      for (int i = 0; i < kMTiles; ++i) {
        Mma<Half>(d[i][2 * n], a[i], b[0], b[1]);
        Mma<Half>(d[i][2 * n + 1], a[i], b[2], b[3]);
      }
    }
  }
}

// Stores a warp's kMTiles x 16 rows, times `factor`, from row `begin` of the
// tensor on, through a piece of shared memory private to the warp.
template <int kHeadSize, int kMTiles, typename Half>
__device__ __forceinline__ void StoreRows(
    const float (&d)[kMTiles][kHeadSize / 8][4], float factor,
    unsigned char* piece, HeadRows<Half> rows, int begin, int end) {
  constexpr int kChunks = kHeadSize / kVector;
  const int lane = Lane();
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kMTiles; ++i) {
#pragma unroll
    for (int n = 0; n < kHeadSize / 8; ++n) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = 16 * i + 8 * h + lane / 4;
        *reinterpret_cast<uint32_t*>(piece + TileByte<kHeadSize>(row, n) +
                                     lane % 4 * 4) =
            Pair<Half>::Pack(d[i][n][2 * h] * factor,
                             d[i][n][2 * h + 1] * factor);
      }
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 16 * kMTiles * kChunks / kWarpSize; ++i) {
    const int index = lane + i * kWarpSize;
    const int row = index / kChunks, chunk = index % kChunks;
    if (begin + row >= end) continue;
    *reinterpret_cast<uint4*>(rows.row(begin + row) + chunk * kVector) =
        *reinterpret_cast<const uint4*>(piece +
                                        TileByte<kHeadSize>(row, chunk));
  }
}

// Sum, or maximum, over the 4 lanes that share a row of a product.
__device__ __forceinline__ float RowSum(float x) {
  x += __shfl_xor_sync(kFullWarp, x, 1);
  return x + __shfl_xor_sync(kFullWarp, x, 2);
}
__device__ __forceinline__ float RowMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(kFullWarp, x, 1));
  return fmaxf(x, __shfl_xor_sync(kFullWarp, x, 2));
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_TILE_CUH_
