// SPDX-License-Identifier: Apache-2.0
// The formula of gemm_seconds.h for one tile and split, over any number
// type, so that fits differentiate exactly the formula used for predictions.
#ifndef WEIR_CALIBRATE_PRICING_GEMM_TERMS_H_
#define WEIR_CALIBRATE_PRICING_GEMM_TERMS_H_

#include <algorithm>
#include <cmath>

#include "calibrate/pricing/gemm_seconds.h"

namespace weir::calibrate {

// Elements of k per main loop step; a partial step costs a full one.
inline constexpr double kGemmStep = 32;
// Partial sums of a split are fp32, written once and read once.
inline constexpr double kPartialSumBytes = 8;
// GEMMs of about this duration begin to reach the power limit.
inline constexpr double kThrottlingSeconds = 1e-3;

// Returns the additional time of a split.
template <typename T>
T SplitSeconds(const GemmTerms<T>& terms, const GemmSize& shape,
               double splits) {
  return terms.launch_seconds + splits * kPartialSumBytes * shape.batch *
                                    shape.m * shape.n /
                                    terms.cache_bytes_per_second;
}

// Returns the fraction of matrix_rate that the alignment of the rows permits.
template <typename T>
double AlignedRate(const GemmTerms<T>& terms, const GemmSize& shape) {
  if (shape.alignment_bytes >= 16) return 1;
  if (shape.alignment_bytes >= 8) return terms.aligned_rates[0];
  return terms.aligned_rates[shape.alignment_bytes >= 4 ? 1 : 2];
}

// Returns the time of moving every operand once.
template <typename T>
T GemmMemorySeconds(const GemmMachine& machine, const GemmTerms<T>& terms,
                    const GemmSize& shape) {
  // An LRU cache keeps either all of a footprint or almost nothing.
  T ratio = terms.cache_bytes / std::max(shape.bytes, 1.0);
  for (int i = 0; i < 4; ++i) ratio = ratio * ratio;  // to the 16th power
  const T missed = 1.0 / (1.0 + ratio);
  return shape.bytes *
         (missed / (terms.memory_rate * machine.memory_bytes_per_second) +
          (1.0 - missed) / terms.cache_bytes_per_second);
}

// Returns the time of all tiles, without memory traffic. Requires: all sizes
// are positive.
template <typename T>
T TileSeconds(const GemmMachine& machine, const GemmTerms<T>& terms,
              const GemmSize& shape, double tile_m, double tile_n,
              double splits) {
  const double processors = machine.num_multiprocessors;
  const double x = shape.batch * std::ceil(shape.m / tile_m) *
                   std::ceil(shape.n / tile_n) * splits / processors;
  const T waves =
      x <= 1 ? T(1.0) : x + terms.wave_quantization * (std::ceil(x) - x);
  // Each multiprocessor's share of the cache bandwidth.
  const T alone = 1.0 / terms.cache_shares;
  const T crowd = x >= 1 ? T(1.0) : (alone > x ? alone : T(x));
  const T arithmetic = 2 * tile_m * tile_n * processors /
                       (terms.matrix_rate * AlignedRate(terms, shape) *
                        machine.flops_per_second);
  const T load = (tile_m + tile_n) * shape.element_bytes * processors * crowd /
                 terms.cache_bytes_per_second;
  const double steps = std::ceil(shape.k / splits / kGemmStep);
  const double result =
      shape.result_bytes > 0 ? shape.result_bytes : shape.element_bytes;
  const T output =
      tile_m * tile_n * result * processors / terms.output_bytes_per_second;
  return waves * (terms.wave_seconds + output +
                  steps * kGemmStep * (arithmetic > load ? arithmetic : load));
}

// Returns the time of a GEMM with one tile and split, launch included.
template <typename T>
T CandidateSeconds(const GemmMachine& machine, const GemmTerms<T>& terms,
                   const GemmSize& shape, double tile_m, double tile_n,
                   double splits) {
  using std::sqrt;
  T tiles = TileSeconds(machine, terms, shape, tile_m, tile_n, splits);
  T memory = GemmMemorySeconds(machine, terms, shape);
  tiles = tiles * tiles;
  memory = memory * memory;
  T seconds = sqrt(sqrt(tiles * tiles + memory * memory));
  if (splits > 1) seconds += SplitSeconds(terms, shape, splits);
  return terms.launch_seconds +
         seconds * (1.0 + terms.throttling * seconds /
                              (seconds + kThrottlingSeconds));
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PRICING_GEMM_TERMS_H_
