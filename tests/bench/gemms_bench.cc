// SPDX-License-Identifier: Apache-2.0
// Cost of pricing a GEMM.
#include <benchmark/benchmark.h>

#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"

namespace weir {
namespace {

void PriceGemm(benchmark::State& state) {
  const DeviceProfile profile = *calibrate::LoadDeviceProfile("h100-sxm");
  const double peak = *calibrate::PeakFlops(profile, "bf16");
  const double m = static_cast<double>(state.range(0));
  calibrate::GemmSize shape = calibrate::MakeGemmSize(m, 4 * 8192, 8192);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(shape);
    benchmark::DoNotOptimize(calibrate::GemmSeconds(
        profile, peak, shape, calibrate::Clock::kSustained));
  }
}
BENCHMARK(PriceGemm)->Arg(1)->Arg(64)->Arg(2048)->Arg(16384);

}  // namespace
}  // namespace weir
