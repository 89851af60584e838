// SPDX-License-Identifier: Apache-2.0
// Seconds of a GEMM on a GPU, from a model of a tiled kernel.
//
// A library cuts the output into tiles of tm x tn, and k into s parts if there
// are few tiles; the fastest of all tiles and splits is used. A wave is one
// tile on every multiprocessor. With x = tiles / multiprocessors:
//
//   waves  = 1 where x <= 1, else x + wave_quantization (ceil(x) - x)
//   step   = max(2 tm tn / (aligned arithmetic rate of a multiprocessor),
//                (tm + tn) bytes / its share of the cache's bandwidth)
//   tiles  = waves (wave_seconds + tm tn bytes / output rate + k/s step)
//   memory = bytes / memory rate, or cache rate where the operands still fit
//   split  = launch_seconds + 2 s m n 4 bytes / cache rate, only where s > 1
//   t      = (tiles^4 + memory^4)^(1/4) + split
//   t     *= 1 + throttling t / (t + 1 ms)
//   seconds = launch_seconds + t
//
// The aligned rate is matrix_rate where all rows are multiples of 16 bytes;
// otherwise kernels load narrower vectors and it is a fraction of that. k/s is
// rounded up to the 32 elements of a main loop step. At equal alignment, the
// result never decreases as a size grows. Tile and wave quantization follow
// NVIDIA's "Matrix Multiplication Background User's Guide".
#ifndef WEIR_CALIBRATE_PRICING_GEMM_SECONDS_H_
#define WEIR_CALIBRATE_PRICING_GEMM_SECONDS_H_

#include <array>

#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

// `batch` GEMMs of (m x k) by (k x n), all in one kernel.
struct GemmSize {
  double batch = 1, m = 0, n = 0, k = 0;
  double element_bytes = 2;  // of operands and result
  double bytes = 0;          // read and written, each operand once
  // Power of two that divides the bytes of all rows; 16 and more: aligned.
  double alignment_bytes = 16;
  double result_bytes = 0;  // of an element of the result; 0: element_bytes
};
// Returns one GEMM with rows of k elements in its operands and n in its result.
GemmSize MakeGemmSize(double m, double n, double k, double element_bytes = 2);

enum class Clock {
  // The same GEMM repeated for a short time, as in benchmarks: boost clocks,
  // and small operands stay in the cache.
  kBurst,
  // Within a training step: clocks reduced by the power limit (sustained_rate),
  // and operands come from memory.
  kSustained,
};

// The model parameters as plain numbers. T is double, or a jet where a fit
// needs derivatives.
template <typename T>
struct GemmTerms {
  T launch_seconds, wave_seconds, matrix_rate, cache_bytes_per_second,
      cache_shares, output_bytes_per_second, memory_rate, cache_bytes,
      wave_quantization, throttling;
  // Fractions of matrix_rate at rows of multiples of 8, 4 and 2 bytes.
  std::array<double, 3> aligned_rates = {1, 1, 1};
};

// Converts burst terms to sustained clocks.
template <typename T>
GemmTerms<T> Sustained(GemmTerms<T> terms, double sustained_rate) {
  terms.matrix_rate = terms.matrix_rate * sustained_rate;
  terms.cache_bytes = T(0.0);
  terms.throttling = T(0.0);  // included in sustained_rate
  return terms;
}

// Datasheet values.
struct GemmMachine {
  double flops_per_second = 0;  // peak in the GEMM's number format
  double num_multiprocessors = 0;
  double memory_bytes_per_second = 0;  // peak
};

GemmTerms<double> TermsOf(const GemmModel& model, Clock clock);

// Returns GemmTerms::aligned_rates; 1 where the model has none.
std::array<double, 3> AlignedRatesOf(const GemmModel& model);

// The kernel that a library is predicted to choose.
struct GemmChoice {
  double seconds = 0;
  int tile_m = 0, tile_n = 0;
  int splits = 1;
};
GemmChoice FastestGemm(const GemmMachine& machine,
                       const GemmTerms<double>& terms, const GemmSize& shape);

// Returns the seconds including the launch. Requires: peak_flops came from
// PeakFlops.
double GemmSeconds(const DeviceProfile& profile, double peak_flops,
                   const GemmSize& shape, Clock clock);
// The same in the format of one of the profile's rates.
double GemmSeconds(const DeviceProfile& profile, const MatrixRate& rate,
                   const GemmSize& shape, Clock clock);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PRICING_GEMM_SECONDS_H_
