// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "calibrate/device_profile.h"

namespace weir {
namespace {

// Seconds of arithmetic if whole waves of tiles ran at the reachable rate.
double ProductSeconds(const DeviceProfile& profile, double peak_flops,
                      const Kernel& kernel) {
  const double processors = profile.num_multiprocessors().value();
  const double tile = profile.product_tile().value();
  const double tile_m = std::min(tile, kernel.m);
  const double tile_n = std::min(tile, kernel.n);
  if (!(tile_m > 0 && tile_n > 0)) return 0;
  const double tiles = kernel.batch * std::ceil(kernel.m / tile_m) *
                       std::ceil(kernel.n / tile_n);
  const double waves = std::ceil(tiles / processors);
  const double flops_per_second =
      peak_flops * profile.product_efficiency().value();
  return waves * processors * 2 * tile_m * tile_n * kernel.k / flops_per_second;
}

// Work on the keys that each query sees, and a ramp for every tile of queries:
// efficiency rises with the length, slower where causal masks halve the keys.
double AttentionSeconds(const DeviceProfile& profile, double peak_flops,
                        const Kernel& kernel) {
  double efficiency = profile.has_attention_efficiency()
                          ? profile.attention_efficiency().value()
                          : profile.product_efficiency().value();
  if (kernel.products > 2 && profile.has_attention_backward_efficiency()) {
    efficiency = profile.attention_backward_efficiency().value();
  }
  const double flops =
      kernel.performed_flops > 0 ? kernel.performed_flops : kernel.flops;
  const double ramp_flops = 2 * kernel.products * kernel.batch * kernel.m *
                            kernel.k * profile.attention_ramp_keys().value();
  return (flops + ramp_flops) / (peak_flops * efficiency);
}

double ArithmeticSeconds(const DeviceProfile& profile, double peak_flops,
                         const Kernel& kernel) {
  switch (kernel.kind) {
    case Kernel::Kind::kProduct:
      return ProductSeconds(profile, peak_flops, kernel);
    case Kernel::Kind::kAttention:
      return AttentionSeconds(profile, peak_flops, kernel);
    case Kernel::Kind::kMemory:
      return 0;
  }
  return 0;
}

}  // namespace

double KernelSeconds(const DeviceProfile& profile, double peak_flops,
                     const Kernel& kernel) {
  const bool norm =
      kernel.part == KernelPart::kNorm && profile.has_norm_efficiency();
  const double memory_efficiency = norm ? profile.norm_efficiency().value()
                                        : profile.memory_efficiency().value();
  const double memory_seconds =
      kernel.bytes /
      (profile.memory_bytes_per_second().value() * memory_efficiency);
  return kernel.launches * profile.kernel_seconds().value() +
         std::max(memory_seconds,
                  ArithmeticSeconds(profile, peak_flops, kernel));
}

double KernelSeconds(const DeviceProfile& profile, double peak_flops,
                     const std::vector<Kernel>& kernels) {
  double seconds = 0;
  for (const Kernel& kernel : kernels) {
    seconds += KernelSeconds(profile, peak_flops, kernel);
  }
  return seconds;
}

}  // namespace weir
