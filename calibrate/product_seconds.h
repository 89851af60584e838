// SPDX-License-Identifier: Apache-2.0
// Seconds of a matrix product on a GPU: the physics of a tiled kernel.
//
// A library cuts the output into tiles of tm x tn, and k into s parts where
// tiles are few; of all tiles and splits it takes the fastest. A wave is one
// tile on every multiprocessor. With x = tiles / multiprocessors:
//
//   waves  = 1 where x <= 1, else x + wave_quantization (ceil(x) - x)
//   step   = max(2 tm tn / arithmetic rate of a multiprocessor,
//                (tm + tn) bytes / its share of the cache's bandwidth)
//   tiles  = waves (wave_seconds + tm tn bytes / output rate + k/s step)
//   memory = bytes / memory rate, or cache rate where the operands still fit
//   split  = launch_seconds + 2 s m n 4 bytes / cache rate, only where s > 1
//   t      = (tiles^4 + memory^4)^(1/4) + split
//   t     *= 1 + throttling t / (t + 1 ms)
//   seconds = launch_seconds + t
//
// k/s is rounded up to the 32 elements that a step of the main loop takes.
// Nothing decreases when a size grows. Tile and wave quantization as in
// NVIDIA's "Matrix Multiplication Background User's Guide".
#ifndef WEIR_CALIBRATE_PRODUCT_SECONDS_H_
#define WEIR_CALIBRATE_PRODUCT_SECONDS_H_

#include "calibrate/device_profile.pb.h"

namespace weir {

// `batch` products of (m x k) by (k x n), all of them in one kernel.
struct ProductShape {
  double batch = 1, m = 0, n = 0, k = 0;
  double element_bytes = 2;  // of operands and result
  double bytes = 0;          // read and written, each operand once
};
ProductShape MakeProduct(double m, double n, double k,
                         double element_bytes = 2);

enum class Clock {
  // The same product again and again for a moment, as benchmarks do: boost
  // clocks, and small operands stay in the cache.
  kBurst,
  // In the middle of a training step: the clocks that the power limit leaves
  // (sustained_rate), and operands come from memory.
  kSustained,
};

// The figures as plain numbers; T is double, or a jet where a fit needs
// derivatives.
template <typename T>
struct ProductTerms {
  T launch_seconds, wave_seconds, matrix_rate, cache_bytes_per_second,
      cache_shares, output_bytes_per_second, memory_rate, cache_bytes,
      wave_quantization, throttling;
};

// From burst to sustained clocks.
template <typename T>
ProductTerms<T> Sustained(ProductTerms<T> terms, double sustained_rate) {
  terms.matrix_rate = terms.matrix_rate * sustained_rate;
  terms.cache_bytes = T(0.0);
  terms.throttling = T(0.0);  // within sustained_rate
  return terms;
}

// What the datasheet says.
struct ProductMachine {
  double flops_per_second = 0;  // peak in the product's number format
  double num_multiprocessors = 0;
  double memory_bytes_per_second = 0;  // peak
};

ProductTerms<double> TermsOf(const ProductModel& model, Clock clock);

// Which kernel a library would take.
struct ProductChoice {
  double seconds = 0;
  int tile_m = 0, tile_n = 0;
  int splits = 1;
};
ProductChoice FastestProduct(const ProductMachine& machine,
                             const ProductTerms<double>& terms,
                             const ProductShape& shape);

// Seconds, launch included; peak_flops as from PeakFlops.
double ProductSeconds(const DeviceProfile& profile, double peak_flops,
                      const ProductShape& shape, Clock clock);

}  // namespace weir

#endif  // WEIR_CALIBRATE_PRODUCT_SECONDS_H_
