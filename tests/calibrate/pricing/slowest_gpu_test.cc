// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/slowest_gpu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "calibrate/pricing/kernel_prices.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "models/kernels.h"

namespace weir::calibrate::slowest_gpu_test {

TEST(SlowestGpuTest, ExpectedMaximumHasItsClosedForms) {
  EXPECT_EQ(ExpectedMaximum(1), 0);
  const double pi = std::numbers::pi;
  EXPECT_NEAR(ExpectedMaximum(2), 1 / std::sqrt(pi), 1e-12);
  EXPECT_NEAR(ExpectedMaximum(3), 1.5 / std::sqrt(pi), 1e-12);
  EXPECT_NEAR(ExpectedMaximum(4), 3 / std::sqrt(pi) / pi * std::acos(-1.0 / 3),
              1e-12);
}

TEST(SlowestGpuTest, ExpectedMaximumGrowsWithTheNumberOfGpus) {
  double before = 0;
  for (int count = 2; count <= 1 << 20; count *= 2) {
    const double now = ExpectedMaximum(count);
    EXPECT_GT(now, before) << count;
    EXPECT_LT(now, std::sqrt(2 * std::log(count))) << count;
    before = now;
  }
  EXPECT_LT(ExpectedMaximum(std::numeric_limits<int>::max()), 7);
}

// Only the clock of the multiprocessors differs between GPUs.
TEST(SlowestGpuTest, SlowsGemmsAndAttentionButNotMemory) {
  DeviceProfile profile = *LoadDeviceProfile("a100-sxm-80gb");
  profile.clear_training_slowdown();
  profile.mutable_speed_spread()->set_value(0.1);
  const double peak = *PeakFlops(profile, "bf16");
  const models::Kernel gemm = models::GemmKernel(
      1, 2048, 4096, 1024, 2, models::KernelPart::kProjectionGemm);
  models::Kernel attention = gemm;
  attention.kind = models::Kernel::Kind::kAttention;
  models::Kernel memory;
  memory.bytes = 1e9;
  const KernelPrices one(profile, "bf16"), many(profile, "bf16", 64);
  const double factor = 1 + 0.1 * ExpectedMaximum(64);
  for (const models::Kernel& kernel : {gemm, attention}) {
    const double seconds = KernelSeconds(profile, peak, kernel);
    EXPECT_EQ(one.Price(profile, peak, kernel).seconds, seconds);
    EXPECT_NEAR(many.Price(profile, peak, kernel).seconds, factor * seconds,
                1e-12 * seconds);
  }
  EXPECT_EQ(many.Price(profile, peak, memory).seconds,
            one.Price(profile, peak, memory).seconds);
}

// Steps of frameworks are slower than kernels alone; replays are not.
TEST(SlowestGpuTest, TrainingSlowsAllKernelsButNotReplays) {
  DeviceProfile profile = *LoadDeviceProfile("a100-sxm-80gb");
  profile.mutable_speed_spread()->set_value(0.1);
  profile.clear_training_slowdown();
  const double peak = *PeakFlops(profile, "bf16");
  models::Kernel memory;
  memory.bytes = 1e9;
  const models::Kernel gemm = models::GemmKernel(
      1, 2048, 4096, 1024, 2, models::KernelPart::kProjectionGemm);
  const KernelPrices one(profile, "bf16"), many(profile, "bf16", 64);
  for (const models::Kernel& kernel : {gemm, memory}) {
    const double seconds = one.Price(profile, peak, kernel).seconds;
    DeviceProfile slow = profile;
    slow.mutable_training_slowdown()->set_value(1.25);
    EXPECT_NEAR(one.Price(slow, peak, kernel).seconds, 1.25 * seconds,
                1e-12 * seconds);
    slow.set_purpose(DeviceProfile::REPLAYS);
    EXPECT_EQ(many.Price(slow, peak, kernel).seconds, seconds);
  }
}

}  // namespace weir::calibrate::slowest_gpu_test
