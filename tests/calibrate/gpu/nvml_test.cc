// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/nvml.h"

#include <gmock/gmock.h>

#include <thread>

#include "calibrate/gpu/host/nvml_sampler.h"

namespace weir::calibrate::nvml_test {

constexpr char kBus[] = "0000:3B:00.0";

TEST(NvmlTest, SaysWhatTheLibrarySays) {
  const auto nvml = Nvml::Open(FAKE_NVML, kBus);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const DeviceState state = (*nvml)->Sample();
  EXPECT_DOUBLE_EQ(state.multiprocessor_hertz, 1755e6);
  EXPECT_DOUBLE_EQ(state.watts, 698.5);
  EXPECT_DOUBLE_EQ(state.celsius, 61);
  EXPECT_TRUE(state.power_capped);
  EXPECT_FALSE(state.thermal_slowdown);
  EXPECT_EQ((*nvml)->driver_version(), "580.65.06");
  EXPECT_EQ((*nvml)->clocks(), "default");
  EXPECT_DOUBLE_EQ((*nvml)->power_limit_watts(), 700);
  EXPECT_DOUBLE_EQ((*nvml)->memory_in_use_bytes(), 600);
}

TEST(NvmlTest, AThreadOfItsOwnSamplesUntilTheEnd) {
  const auto nvml = Nvml::Open(FAKE_NVML, kBus);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  NvmlSampler sampler(nvml->get(), 1e-4);
  EXPECT_DOUBLE_EQ(sampler.latest().watts, 698.5);  // at once
  while (sampler.num_samples() < 5) std::this_thread::yield();
  EXPECT_DOUBLE_EQ(sampler.latest().multiprocessor_hertz, 1755e6);
}

TEST(NvmlTest, OlderDriversCallTheReasonsOtherwise) {
  const auto nvml = Nvml::Open(FAKE_OLD_NVML, kBus);
  ASSERT_TRUE(nvml.ok()) << nvml.status();
  const DeviceState state = (*nvml)->Sample();
  EXPECT_FALSE(state.power_capped);
  EXPECT_TRUE(state.thermal_slowdown);
  EXPECT_EQ(state.watts, 0);  // the GPU does not report it
  EXPECT_EQ((*nvml)->clocks(), "application clocks at 1305 MHz");
}

TEST(NvmlTest, WithoutTheLibraryItIsUnavailableInWordsForAProfile) {
  const auto nvml = Nvml::Open("libno-such-nvml.so.1", kBus);
  EXPECT_EQ(nvml.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(nvml.status().message()),
              testing::StartsWith("clocks, power and temperature are unknown: "
                                  "libno-such-nvml.so.1"));
}

TEST(NvmlTest, ALibraryWithoutItsFunctionsIsTooOld) {
  const auto nvml = Nvml::Open("libm.so.6", kBus);
  EXPECT_EQ(nvml.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(nvml.status().message()),
              testing::HasSubstr("is too old"));
}

TEST(NvmlTest, AGpuThatItDoesNotShowIsNamed) {
  const auto nvml = Nvml::Open(FAKE_NVML, "0000:86:00.0");
  EXPECT_EQ(nvml.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(nvml.status().message()),
              testing::HasSubstr("does not show GPU 0000:86:00.0: Not Found"));
}

}  // namespace weir::calibrate::nvml_test
