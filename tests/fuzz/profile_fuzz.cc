// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/textproto.h"
#include "calibrate/pricing/kernel_prices.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/partition_slowdown.h"
#include "models/kernels.h"
#include "models/layer_work.h"

namespace {

void Require(bool fact) {
  if (!fact) std::abort();
}

// Checks that a valid profile prices all kernels of a model.
void Use(const weir::DeviceProfile& profile) {
  Require(std::isfinite(weir::calibrate::ReservedBytes(profile)));
  for (const absl::string_view pass : weir::calibrate::kSharedPasses) {
    for (double factor :
         weir::calibrate::SharingCurve(profile.partition_slowdown(), pass)) {
      Require(factor > 0 && std::isfinite(factor));
    }
  }
  for (const weir::MatrixRate& rate : profile.matrix_rates()) {
    const weir::calibrate::KernelPrices prices(profile, rate.format());
    for (double m : {1.0, 700.0, 1024.0, 2048.0, 1e5}) {
      for (const weir::models::Kernel& kernel :
           {weir::models::GemmKernel(1, m, 2304, 768, 2,
                                     weir::models::KernelPart::kProjectionGemm),
            weir::models::MemoryKernel(m * 1536,
                                       weir::models::KernelPart::kNorm)}) {
        const double seconds =
            prices.Price(profile, rate.peak_flops().value(), kernel).seconds;
        Require(std::isfinite(seconds) && seconds >= 0);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  weir::DeviceProfile profile;
  if (!weir::ParseTextProto("fuzz", text, &profile).ok()) return 0;
  const absl::Status status =
      weir::calibrate::ValidateDeviceProfile("fuzz", profile);
  if (status.ok()) {
    Use(profile);
  } else {
    Require(!status.message().empty());
  }
  return 0;
}
