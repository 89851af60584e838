// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/gemm_seconds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calibrate/pricing/gemm_terms.h"
#include "calibrate/profile/gemm_model.h"
#include "models/kernels.h"

namespace weir::calibrate {
namespace {

struct Tile {
  int m, n;
};
// Output tiles of cuBLAS and CUTLASS kernels for tensor cores, largest first.
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {128, 64},
                           {64, 128},  {64, 64},   {64, 32},   {32, 64}};
constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

double Square(double x) { return x * x; }

GemmMachine MachineAt(const DeviceProfile& profile, double peak_flops) {
  return {peak_flops, profile.num_multiprocessors().value(),
          profile.memory_bytes_per_second().value()};
}

}  // namespace

GemmSize MakeGemmSize(double m, double n, double k, double element_bytes) {
  GemmSize size = {
      1, m, n, k, element_bytes, element_bytes * (m * k + k * n + m * n)};
  const double alignment = models::RowAlignment(n, k);
  if (alignment > 0) size.alignment_bytes = alignment * element_bytes;
  return size;
}

std::array<double, 3> AlignedRatesOf(const GemmModel& model) {
  std::array<double, 3> rates = {1, 1, 1};
  for (size_t i = 0; i < rates.size(); ++i) {
    const double value = (model.*AlignmentFigures()[i].get)().value();
    if (value > 0) rates[i] = value;
  }
  return rates;
}

GemmTerms<double> TermsOf(const GemmModel& model, Clock clock) {
  GemmTerms<double> terms;
  terms.launch_seconds = model.launch_seconds().value();
  terms.wave_seconds = model.wave_seconds().value();
  terms.matrix_rate = model.matrix_rate().value();
  terms.cache_bytes_per_second = model.cache_bytes_per_second().value();
  terms.cache_shares = model.cache_shares().value();
  terms.output_bytes_per_second = model.output_bytes_per_second().value();
  terms.memory_rate = model.memory_rate().value();
  terms.cache_bytes = model.cache_bytes().value();
  terms.wave_quantization = model.wave_quantization().value();
  terms.throttling = model.throttling().value();
  terms.aligned_rates = AlignedRatesOf(model);
  return clock == Clock::kBurst
             ? terms
             : Sustained(terms, model.sustained_rate().value());
}

GemmChoice FastestGemm(const GemmMachine& machine,
                       const GemmTerms<double>& terms, const GemmSize& shape) {
  GemmChoice best;
  best.seconds = terms.launch_seconds;
  if (!(shape.batch > 0 && shape.m > 0 && shape.n > 0 && shape.k > 0)) {
    return best;
  }
  // The launch and throttling terms grow with this time and do not move its
  // minimum.
  double least = std::numeric_limits<double>::infinity();
  const double memory = GemmMemorySeconds(machine, terms, shape);
  const double bound =
      std::max(memory, 2 * shape.batch * shape.m * shape.n * shape.k /
                           (terms.matrix_rate * machine.flops_per_second));
  for (int splits : kSplits) {
    const double split = splits > 1 ? SplitSeconds(terms, shape, splits) : 0.0;
    if (split + bound >= least) break;  // more splits cost even more
    for (const Tile& tile : kTiles) {
      const double tiles =
          TileSeconds(machine, terms, shape, tile.m, tile.n, splits);
      if (split + tiles >= least) continue;
      const double seconds =
          split +
          std::sqrt(std::sqrt(Square(Square(tiles)) + Square(Square(memory))));
      if (seconds >= least) continue;
      least = seconds;
      best.tile_m = tile.m;
      best.tile_n = tile.n;
      best.splits = splits;
    }
  }
  best.seconds = CandidateSeconds(machine, terms, shape, best.tile_m,
                                  best.tile_n, best.splits);
  return best;
}

double GemmSeconds(const DeviceProfile& profile, double peak_flops,
                   const GemmSize& shape, Clock clock) {
  return FastestGemm(MachineAt(profile, peak_flops),
                     TermsOf(profile.gemm(), clock), shape)
      .seconds;
}

double GemmSeconds(const DeviceProfile& profile, const MatrixRate& rate,
                   const GemmSize& shape, Clock clock) {
  const GemmModel& model = rate.has_gemm() ? rate.gemm() : profile.gemm();
  return FastestGemm(MachineAt(profile, rate.peak_flops().value()),
                     TermsOf(model, clock), shape)
      .seconds;
}

}  // namespace weir::calibrate
