// SPDX-License-Identifier: Apache-2.0
// Device profiles. A valid profile prices every kernel of a model, more work
// never costs less, and its text form parses to the same value.
#include <cmath>

#include "base/textproto.h"
#include "calibrate/describe/describe_profile.h"
#include "calibrate/pricing/kernel_prices.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/partition_slowdown.h"
#include "models/kernels.h"
#include "models/layer_work.h"
#include "tests/fuzz/generate_profile.h"
#include "tests/fuzz/target.h"

namespace weir::fuzz {
namespace {

models::Kernel GenerateKernel(Choices* choices) {
  const double m = choices->LogReal(1, 1e5), n = choices->LogReal(1, 1e5);
  if (choices->OneIn(3)) {
    return models::MemoryKernel(
        m * n, choices->Of<models::KernelPart>(
                   {models::KernelPart::kNorm, models::KernelPart::kSoftmax,
                    models::KernelPart::kElementwise}));
  }
  return models::GemmKernel(choices->Int(1, 64), std::floor(m), std::floor(n),
                            std::floor(choices->LogReal(1, 1e5)),
                            choices->Int(1, 2) * 2,
                            models::KernelPart::kProjectionGemm);
}

void PriceKernels(const DeviceProfile& profile, Choices* choices) {
  for (const MatrixRate& rate : profile.matrix_rates()) {
    const calibrate::KernelPrices prices(profile, rate.format());
    for (int i = 0; i < 4; ++i) {
      const models::Kernel kernel = GenerateKernel(choices);
      const double seconds =
          prices.Price(profile, rate.peak_flops().value(), kernel).seconds;
      REQUIRE_THAT(std::isfinite(seconds) && seconds >= 0,
                   PrintTextProto(profile));
      const double by_figures =
          calibrate::KernelSeconds(profile, rate.peak_flops().value(), kernel);
      REQUIRE(std::isfinite(by_figures) && by_figures >= 0);
    }
  }
}

}  // namespace

bool RunInput(Choices* choices) {
  const DeviceProfile profile = GenerateProfile(choices);
  if (choices->OneIn(8)) {
    const std::string text = PrintTextProto(profile);
    DeviceProfile again;
    REQUIRE_OK(ParseTextProto("again", text, &again));
    REQUIRE(PrintTextProto(again) == text);
  }
  const absl::Status status = calibrate::ValidateDeviceProfile("fuzz", profile);
  if (!status.ok()) {
    REQUIRE(absl::IsInvalidArgument(status) && !status.message().empty());
    return false;
  }
  const double reserved = calibrate::ReservedBytes(profile);
  REQUIRE(std::isfinite(reserved) && reserved >= 0);
  for (const absl::string_view pass : calibrate::kSharedPasses) {
    for (const double factor :
         calibrate::SharingCurve(profile.partition_slowdown(), pass)) {
      REQUIRE(std::isfinite(factor) && factor > 0);
    }
  }
  PriceKernels(profile, choices);
  if (choices->OneIn(16)) REQUIRE(!calibrate::DescribeProfile(profile).empty());
  return true;
}

}  // namespace weir::fuzz
