// SPDX-License-Identifier: Apache-2.0
// Fused attention forward (Dao, "FlashAttention-2", 2023, algorithm 1): scores
// never leave registers. 4 warps of 32 queries each loop over keys, 64 at a
// time: values are loaded while the scores are computed, the next keys while
// the values are weighted.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_FORWARD_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_FORWARD_CUH_

#include "calibrate/gpu/kernels/attention_tile.cuh"

namespace weir::calibrate {

struct ForwardTile {
  static constexpr int kThreads = 128;
  static constexpr int kMTiles = 2;  // 16 queries each, per warp
  static constexpr int kQueries = kThreads / kWarpSize * 16 * kMTiles;
  static constexpr int kKeys = 64;
};

// State of a warp's queries: row 8 h + l / 4 of the i-th 16 is [i][h] in lane
// l.
template <int kHeadSize>
struct ForwardRows {
  float o[ForwardTile::kMTiles][kHeadSize / 8][4];
  float largest[ForwardTile::kMTiles][2];
  float sum[ForwardTile::kMTiles][2];  // partial sum of a lane
};

using Scores = float[ForwardTile::kMTiles][ForwardTile::kKeys / 8][4];

// Masks keys that a query does not see or that do not exist. `queries` and
// `keys` are the first of each.
__device__ __forceinline__ void MaskScores(Scores& scores, int queries,
                                           int keys,
                                           const AttentionShape& shape) {
  const int lane = Opaque(Lane());
#pragma unroll
  for (int i = 0; i < ForwardTile::kMTiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int query = queries + 16 * i + 8 * h + lane / 4;
      int end = shape.sequence_length;
      if (shape.causal && query < end) end = query + 1;
      end -= keys + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < ForwardTile::kKeys / 8; ++n) {
        if (8 * n >= end) scores[i][n][2 * h] = -INFINITY;
        if (8 * n + 1 >= end) scores[i][n][2 * h + 1] = -INFINITY;
      }
    }
  }
}

// Replaces scores by exponentials, and rescales sums and outputs to the new
// maximum.
template <int kHeadSize>
__device__ __forceinline__ void Exponentials(Scores& scores,
                                             ForwardRows<kHeadSize>& rows,
                                             float log2_scale) {
#pragma unroll
  for (int i = 0; i < ForwardTile::kMTiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = rows.largest[i][h];
#pragma unroll
      for (int n = 0; n < ForwardTile::kKeys / 8; ++n) {
        largest =
            fmaxf(largest, fmaxf(scores[i][n][2 * h], scores[i][n][2 * h + 1]));
      }
      // Finite: each query sees a key of the first tile.
      largest = RowMax(largest);
      const float shift = largest * log2_scale;
      const float keep = Exp2(rows.largest[i][h] * log2_scale - shift);
      float sum = 0;
#pragma unroll
      for (int n = 0; n < ForwardTile::kKeys / 8; ++n) {
#pragma unroll
        for (int j = 2 * h; j < 2 * h + 2; ++j) {
          scores[i][n][j] = Exp2(scores[i][n][j] * log2_scale - shift);
          sum += scores[i][n][j];
        }
      }
      rows.largest[i][h] = largest;
      rows.sum[i][h] = rows.sum[i][h] * keep + sum;
#pragma unroll
      for (int n = 0; n < kHeadSize / 8; ++n) {
        rows.o[i][n][2 * h] *= keep;
        rows.o[i][n][2 * h + 1] *= keep;
      }
    }
  }
}

// Divides by the sums; statistics are the natural logarithm of the sum of
// exponentials.
template <int kHeadSize>
__device__ __forceinline__ void FinishRows(ForwardRows<kHeadSize>& rows,
                                           float* statistics, int begin,
                                           const AttentionShape& shape) {
  const int lane = Lane();
  const float log2_scale = shape.scale * kLog2E;
#pragma unroll
  for (int i = 0; i < ForwardTile::kMTiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float sum = RowSum(rows.sum[i][h]);
      const float inverse = 1 / sum;
#pragma unroll
      for (int n = 0; n < kHeadSize / 8; ++n) {
        rows.o[i][n][2 * h] *= inverse;
        rows.o[i][n][2 * h + 1] *= inverse;
      }
      const int query = begin + 16 * i + 8 * h + lane / 4;
      if (lane % 4 == 0 && query < shape.sequence_length) {
        statistics[query] =
            (rows.largest[i][h] * log2_scale + log2f(sum)) * kLn2;
      }
    }
  }
}

// Blocks: tiles of queries of all heads of all sequences, the last tile first,
// as it has the most work if causal.
template <typename Half, int kHeadSize>
__global__ void __launch_bounds__(ForwardTile::kThreads, 2)
    AttentionForward(const Half* packed, Half* o, float* statistics,
                     AttentionShape shape) {
  constexpr int kThreads = ForwardTile::kThreads;
  constexpr int kMTiles = ForwardTile::kMTiles;
  constexpr int kQueries = ForwardTile::kQueries;
  constexpr int kKeys = ForwardTile::kKeys;
  constexpr int kBytes = kRowBytes<kHeadSize>;
  const int length = shape.sequence_length;
  const int num_heads = shape.heads * shape.sequences;
  const int tile = static_cast<int>((gridDim.x - 1 - blockIdx.x) / num_heads);
  const int index = static_cast<int>(blockIdx.x % num_heads);
  const int head = index % shape.heads, sequence = index / shape.heads;
  const int key_head = shape.heads + head / (shape.heads / shape.kv_heads);
  const auto rows_of = [&](int column_head) {
    return RowsOf<kHeadSize>(packed, sequence, length, column_head,
                             shape.heads + 2 * shape.kv_heads);
  };
  const HeadRows<const Half> keys = rows_of(key_head);
  const HeadRows<const Half> values = rows_of(key_head + shape.kv_heads);

  auto* shared = SharedMemory<unsigned char>();
  const SharedAddress q_tile = AddressOf(shared);
  const SharedAddress k_tile = q_tile + kQueries * kBytes;
  const SharedAddress v_tile = k_tile + kKeys * kBytes;
  CopyTile<kHeadSize, kQueries, kThreads>(q_tile, rows_of(head),
                                          tile * kQueries, length);
  CopyTile<kHeadSize, kKeys, kThreads>(k_tile, keys, 0, length);
  CommitCopies();

  const int warp_row = static_cast<int>(threadIdx.x) / kWarpSize * 16 * kMTiles;
  const int query = tile * kQueries + warp_row;  // the warp's first
  const LaneBytes<kHeadSize> lane;
  ForwardRows<kHeadSize> mine = {};
#pragma unroll
  for (int i = 0; i < kMTiles; ++i) {
    mine.largest[i][0] = mine.largest[i][1] = -INFINITY;
  }
  int end = length;  // end of the keys visible to any query of the block
  if (shape.causal && (tile + 1) * kQueries < end) end = (tile + 1) * kQueries;
  // Number of keys that all of the warp's queries see.
  const int all_see = shape.causal && query + 1 < length ? query + 1 : length;
#pragma unroll 1
  for (int key = 0; key < end; key += kKeys) {
    WaitCopies<0>();
    __syncthreads();  // keys have arrived, the previous values are free
    CopyTile<kHeadSize, kKeys, kThreads>(v_tile, values, key, length);
    CommitCopies();
    Scores scores = {};
    MultiplyRows<Half, kHeadSize, kMTiles, kKeys>(
        scores, q_tile + warp_row * kBytes, k_tile, lane);
    WaitCopies<0>();
    __syncthreads();  // values have arrived, the keys are free
    if (key + kKeys < end) {
      CopyTile<kHeadSize, kKeys, kThreads>(k_tile, keys, key + kKeys, length);
    }
    CommitCopies();
    if (key + kKeys > all_see) MaskScores(scores, query, key, shape);
    Exponentials(scores, mine, shape.scale * kLog2E);
    MultiplySums<Half, kHeadSize, kMTiles, kKeys>(mine.o, scores, v_tile, lane);
  }
  FinishRows(mine, statistics + static_cast<int64_t>(index) * length, query,
             shape);
  StoreRows<kHeadSize, kMTiles>(
      mine.o, 1.0F, shared + warp_row * kBytes,
      RowsOf<kHeadSize>(o, sequence, length, head, shape.heads), query, length);
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_FORWARD_CUH_
