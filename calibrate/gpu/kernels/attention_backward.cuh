// SPDX-License-Identifier: Apache-2.0
// Fused attention backward (Dao et al., "FlashAttention", 2022, section 3.1;
// "FlashAttention-2", 2023, algorithm 2), but with two kernels, by queries and
// by keys, that each recompute the scores: 7 products instead of 5. In return,
// gradients of queries need no fp32 copy and no atomics, and results are
// deterministic. With P = exp(scale S - statistics), dots = rows of dO . O and
// dS = P (dP - dots), dP = dO V^T:
//   dQ = scale dS K, dK = scale dS^T Q, dV = P^T dO.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_BACKWARD_CUH_
#define WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_BACKWARD_CUH_

#include "calibrate/gpu/kernels/attention_tile.cuh"

namespace weir::calibrate {

template <typename Half>
struct AttentionGradients {
  const Half *d_o, *o, *packed;
  const float* statistics;  // [sequences, heads, s]
  Half* d_packed;
  float* dots;  // [sequences, heads, s]
};

// One block per token; kHeadSize / 8 lanes per head.
template <typename Half, int kHeadSize>
__global__ void RowDots(const Half* d_o, const Half* o, float* dots,
                        int sequence_length, int heads) {
  constexpr int kLanes = kHeadSize / kVector;
  const int token = static_cast<int>(blockIdx.x);
  const int num_vectors = heads * kLanes;
  const int64_t begin = static_cast<int64_t>(token) * num_vectors;
  const int sequence = token / sequence_length;
  for (int first = 0; first < num_vectors;
       first += static_cast<int>(blockDim.x)) {
    const int vector = first + static_cast<int>(threadIdx.x);
    float sum = 0;
    if (vector < num_vectors) {
      const Float8 a = Load8(d_o, begin + vector), b = Load8(o, begin + vector);
#pragma unroll
      for (int j = 0; j < kVector; ++j) sum += a.v[j] * b.v[j];
    }
#pragma unroll
    for (int distance = 1; distance < kLanes; distance *= 2) {
      sum += __shfl_xor_sync(kFullWarp, sum, distance);
    }
    if (vector < num_vectors && vector % kLanes == 0) {
      const int64_t row =
          static_cast<int64_t>(sequence) * heads + vector / kLanes;
      dots[row * sequence_length + token % sequence_length] = sum;
    }
  }
}

// ---- By queries: 4 warps of 32 queries loop over keys and prefetch the next
// keys.

template <int kHeadSize>
struct QueryTile {
  static constexpr int kThreads = 128;
  static constexpr int kMTiles = 2;
  static constexpr int kQueries = kThreads / kWarpSize * 16 * kMTiles;
  static constexpr int kKeys = kHeadSize == 64 ? 64 : 32;
  static constexpr int kSharedBytes =
      (2 * kQueries + 2 * 2 * kKeys) * kRowBytes<kHeadSize>;
};

// On input `ds` is dO V^T, on output the gradient of the scaled scores.
// `queries` and `keys` are the first of each.
template <int kMTiles, int kKeys>
__device__ __forceinline__ void ScoreGradients(
    float (&ds)[kMTiles][kKeys / 8][4],
    const float (&scores)[kMTiles][kKeys / 8][4],
    const float (&statistics)[kMTiles][2], const float (&dots)[kMTiles][2],
    int queries, int keys, const AttentionShape& shape) {
  const int lane = Opaque(Lane());
  const float log2_scale = shape.scale * kLog2E;
#pragma unroll
  for (int i = 0; i < kMTiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int query = queries + 16 * i + 8 * h + lane / 4;
      int end = shape.sequence_length;
      if (shape.causal && query < end) end = query + 1;
      end -= keys + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const float p =
              Exp2(scores[i][n][2 * h + j] * log2_scale - statistics[i][h]);
          float& d = ds[i][n][2 * h + j];
          d = 8 * n + j < end ? p * (d - dots[i][h]) : 0.0F;
        }
      }
    }
  }
}

template <typename Half, int kHeadSize>
__global__ void __launch_bounds__(QueryTile<kHeadSize>::kThreads, 2)
    AttentionBackwardQueries(AttentionGradients<Half> t, AttentionShape shape) {
  using Tile = QueryTile<kHeadSize>;
  constexpr int kThreads = Tile::kThreads, kMTiles = Tile::kMTiles;
  constexpr int kQueries = Tile::kQueries, kKeys = Tile::kKeys;
  constexpr int kBytes = kRowBytes<kHeadSize>;
  const int length = shape.sequence_length;
  const int num_heads = shape.heads * shape.sequences;
  const int tile = static_cast<int>((gridDim.x - 1 - blockIdx.x) / num_heads);
  const int index = static_cast<int>(blockIdx.x % num_heads);
  const int head = index % shape.heads, sequence = index / shape.heads;
  const int key_head = shape.heads + head / (shape.heads / shape.kv_heads);
  const int all_heads = shape.heads + 2 * shape.kv_heads;
  const HeadRows<const Half> keys =
      RowsOf<kHeadSize>(t.packed, sequence, length, key_head, all_heads);
  const HeadRows<const Half> values = RowsOf<kHeadSize>(
      t.packed, sequence, length, key_head + shape.kv_heads, all_heads);

  auto* shared = SharedMemory<unsigned char>();
  const SharedAddress q_tile = AddressOf(shared);
  const SharedAddress do_tile = q_tile + kQueries * kBytes;
  const SharedAddress kv_tiles = do_tile + kQueries * kBytes;
  const auto copy_keys = [&](int key, int stage) {
    const SharedAddress to = kv_tiles + stage * 2 * kKeys * kBytes;
    CopyTile<kHeadSize, kKeys, kThreads>(to, keys, key, length);
    CopyTile<kHeadSize, kKeys, kThreads>(to + kKeys * kBytes, values, key,
                                         length);
    CommitCopies();
  };
  CopyTile<kHeadSize, kQueries, kThreads>(
      q_tile, RowsOf<kHeadSize>(t.packed, sequence, length, head, all_heads),
      tile * kQueries, length);
  CopyTile<kHeadSize, kQueries, kThreads>(
      do_tile, RowsOf<kHeadSize>(t.d_o, sequence, length, head, shape.heads),
      tile * kQueries, length);
  copy_keys(0, 0);

  const LaneBytes<kHeadSize> lane;
  const int warp_row = static_cast<int>(threadIdx.x) / kWarpSize * 16 * kMTiles;
  const int query = tile * kQueries + warp_row;  // the warp's first
  float statistics[kMTiles][2] = {}, dots[kMTiles][2] = {};
#pragma unroll
  for (int i = 0; i < kMTiles; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = query + 16 * i + 8 * h + Lane() / 4;
      if (row >= length) continue;
      const int64_t at = static_cast<int64_t>(index) * length + row;
      statistics[i][h] = t.statistics[at] * kLog2E;
      dots[i][h] = t.dots[at];
    }
  }
  int end = length;  // end of the keys visible to any query of the block
  if (shape.causal && (tile + 1) * kQueries < end) end = (tile + 1) * kQueries;
  float dq[kMTiles][kHeadSize / 8][4] = {};
  int stage = 0;
#pragma unroll 1
  for (int key = 0; key < end; key += kKeys, stage ^= 1) {
    WaitCopies<0>();
    __syncthreads();  // these keys have arrived, the other stage is free
    if (key + kKeys < end) copy_keys(key + kKeys, stage ^ 1);
    const SharedAddress k_tile = kv_tiles + stage * 2 * kKeys * kBytes;
    float scores[kMTiles][kKeys / 8][4] = {}, ds[kMTiles][kKeys / 8][4] = {};
    MultiplyRows<Half, kHeadSize, kMTiles, kKeys>(
        scores, q_tile + warp_row * kBytes, k_tile, lane);
    MultiplyRows<Half, kHeadSize, kMTiles, kKeys>(
        ds, do_tile + warp_row * kBytes, k_tile + kKeys * kBytes, lane);
    ScoreGradients<kMTiles, kKeys>(ds, scores, statistics, dots, query, key,
                                   shape);
    MultiplySums<Half, kHeadSize, kMTiles, kKeys>(dq, ds, k_tile, lane);
  }
  StoreRows<kHeadSize, kMTiles>(
      dq, shape.scale, shared + warp_row * kBytes,
      RowsOf<kHeadSize>(t.d_packed, sequence, length, head, all_heads), query,
      length);
}

// ---- By keys: each warp has 16 or 32 keys and loops over queries of all heads
// that read them. All products use transposed scores, so that these are left
// factors in their register layout.

template <int kHeadSize>
struct KeyTile {
  static constexpr int kMTiles = kHeadSize == 64 ? 2 : 1;
  static constexpr int kKeys = 128;
  static constexpr int kThreads = kKeys / (16 * kMTiles) * kWarpSize;
  static constexpr int kQueries = kHeadSize == 64 ? 32 : 64;
  static constexpr int kBlocks = kHeadSize == 64 ? 2 : 1;  // per multiprocessor
  // Queries and gradients of the outputs; statistics and dots follow all tiles.
  static constexpr int kStageBytes = 2 * kQueries * kRowBytes<kHeadSize>;
  static constexpr int kRowsBytes = 2 * kQueries * 4;
  static constexpr int kSharedBytes =
      2 * kKeys * kRowBytes<kHeadSize> + 2 * kStageBytes + 2 * kRowsBytes;
};

// On input `ds` is V dO^T, on output gradients; on output `scores` is P; both
// are transposed. `rows`: statistics and dots of the queries.
template <int kMTiles, int kQueries>
__device__ __forceinline__ void TransposedGradients(
    float (&ds)[kMTiles][kQueries / 8][4],
    float (&scores)[kMTiles][kQueries / 8][4], const float* rows, int queries,
    int keys, const AttentionShape& shape) {
  const int lane = Opaque(Lane());
  const float log2_scale = shape.scale * kLog2E;
  const bool mask = shape.causal && queries < keys + 16 * kMTiles;
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
    const int column = 8 * n + lane % 4 * 2;
    const float2 statistics = *reinterpret_cast<const float2*>(rows + column);
    const float2 dots =
        *reinterpret_cast<const float2*>(rows + kQueries + column);
#pragma unroll
    for (int i = 0; i < kMTiles; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float shift = (j % 2 == 0 ? statistics.x : statistics.y) * kLog2E;
        float p = Exp2(scores[i][n][j] * log2_scale - shift);
        const int key = keys + 16 * i + j / 2 * 8 + lane / 4;
        if (mask && key > queries + column + j % 2) p = 0;
        scores[i][n][j] = p;
        ds[i][n][j] = p * (ds[i][n][j] - (j % 2 == 0 ? dots.x : dots.y));
      }
    }
  }
}

template <typename Half, int kHeadSize>
__global__ void __launch_bounds__(KeyTile<kHeadSize>::kThreads,
                                  KeyTile<kHeadSize>::kBlocks)
    AttentionBackwardKeys(AttentionGradients<Half> t, AttentionShape shape) {
  using Tile = KeyTile<kHeadSize>;
  constexpr int kThreads = Tile::kThreads, kMTiles = Tile::kMTiles;
  constexpr int kQueries = Tile::kQueries, kKeys = Tile::kKeys;
  constexpr int kBytes = kRowBytes<kHeadSize>;
  const int length = shape.sequence_length;
  const int num_heads = shape.kv_heads * shape.sequences;
  // The first keys come first, since most queries see them.
  const int first_key = static_cast<int>(blockIdx.x / num_heads) * kKeys;
  const int index = static_cast<int>(blockIdx.x % num_heads);
  const int kv_head = index % shape.kv_heads, sequence = index / shape.kv_heads;
  const int group = shape.heads / shape.kv_heads;
  const int all_heads = shape.heads + 2 * shape.kv_heads;
  const int key_head = shape.heads + kv_head;

  auto* shared = SharedMemory<unsigned char>();
  const SharedAddress k_tile = AddressOf(shared);
  const SharedAddress v_tile = k_tile + kKeys * kBytes;
  const SharedAddress stages = v_tile + kKeys * kBytes;
  constexpr int kRowsAt = 2 * kKeys * kBytes + 2 * Tile::kStageBytes;
  const auto copy_queries = [&](int head, int query, int stage) {
    const SharedAddress to = stages + stage * Tile::kStageBytes;
    CopyTile<kHeadSize, kQueries, kThreads>(
        to, RowsOf<kHeadSize>(t.packed, sequence, length, head, all_heads),
        query, length);
    CopyTile<kHeadSize, kQueries, kThreads>(
        to + kQueries * kBytes,
        RowsOf<kHeadSize>(t.d_o, sequence, length, head, shape.heads), query,
        length);
    const int row = static_cast<int>(threadIdx.x);
    if (row < kQueries) {
      const bool valid = query + row < length;
      const int64_t at =
          (static_cast<int64_t>(sequence) * shape.heads + head) * length +
          (valid ? query + row : 0);
      const SharedAddress rows =
          k_tile + kRowsAt + stage * Tile::kRowsBytes + 4 * row;
      CopyAsync<4>(rows, t.statistics + at, valid);
      CopyAsync<4>(rows + 4 * kQueries, t.dots + at, valid);
    }
    CommitCopies();
  };
  CopyTile<kHeadSize, kKeys, kThreads>(
      k_tile,
      RowsOf<kHeadSize>(t.packed, sequence, length, key_head, all_heads),
      first_key, length);
  CopyTile<kHeadSize, kKeys, kThreads>(
      v_tile,
      RowsOf<kHeadSize>(t.packed, sequence, length, key_head + shape.kv_heads,
                        all_heads),
      first_key, length);

  const LaneBytes<kHeadSize> lane;
  const int warp_row = static_cast<int>(threadIdx.x) / kWarpSize * 16 * kMTiles;
  const int first_query = shape.causal ? first_key / kQueries * kQueries : 0;
  float dk[kMTiles][kHeadSize / 8][4] = {}, dv[kMTiles][kHeadSize / 8][4] = {};
  int head = kv_head * group, query = first_query, stage = 0;
  const int end_head = head + group;
  copy_queries(head, query, 0);
#pragma unroll 1
  while (head < end_head) {
    const int now = query;
    query += kQueries;
    if (query >= length) {
      query = first_query;
      ++head;
    }
    WaitCopies<0>();
    __syncthreads();  // these queries have arrived, the other stage is free
    if (head < end_head) copy_queries(head, query, stage ^ 1);
    const SharedAddress q_tile = stages + stage * Tile::kStageBytes;
    const SharedAddress do_tile = q_tile + kQueries * kBytes;
    float scores[kMTiles][kQueries / 8][4] = {};
    float ds[kMTiles][kQueries / 8][4] = {};
    MultiplyRows<Half, kHeadSize, kMTiles, kQueries>(
        scores, k_tile + warp_row * kBytes, q_tile, lane);
    MultiplyRows<Half, kHeadSize, kMTiles, kQueries>(
        ds, v_tile + warp_row * kBytes, do_tile, lane);
    TransposedGradients<kMTiles, kQueries>(
        ds, scores,
        reinterpret_cast<const float*>(shared + kRowsAt +
                                       stage * Tile::kRowsBytes),
        now, first_key + warp_row, shape);
    MultiplySums<Half, kHeadSize, kMTiles, kQueries>(dv, scores, do_tile, lane);
    MultiplySums<Half, kHeadSize, kMTiles, kQueries>(dk, ds, q_tile, lane);
    stage ^= 1;
  }
  StoreRows<kHeadSize, kMTiles>(
      dk, shape.scale, shared + warp_row * kBytes,
      RowsOf<kHeadSize>(t.d_packed, sequence, length, key_head, all_heads),
      first_key + warp_row, length);
  StoreRows<kHeadSize, kMTiles>(
      dv, 1.0F, shared + (kKeys + warp_row) * kBytes,
      RowsOf<kHeadSize>(t.d_packed, sequence, length, key_head + shape.kv_heads,
                        all_heads),
      first_key + warp_row, length);
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_ATTENTION_BACKWARD_CUH_
