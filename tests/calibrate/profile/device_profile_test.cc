// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/device_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/assets.h"

namespace weir::calibrate::device_profile_test {

using testing::AllOf;
using testing::HasSubstr;

TEST(DeviceProfileTest, EveryPresetIsValid) {
  const std::vector<std::string> presets =
      ListAssets("calibrate/profile/presets");
  EXPECT_GE(presets.size(), 8u);
  for (const std::string& name : presets) {
    const auto profile = LoadDeviceProfile(name);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_TRUE(PeakFlops(*profile, "fp16").ok()) << name;
  }
}

TEST(DeviceProfileTest, PeaksAreTheDatasheets) {
  EXPECT_EQ(*PeakFlops(*LoadDeviceProfile("v100-sxm2-16gb"), "fp16"), 125e12);
  EXPECT_EQ(*PeakFlops(*LoadDeviceProfile("v100-sxm2-32gb"), "fp32"), 15.7e12);
  EXPECT_EQ(*PeakFlops(*LoadDeviceProfile("a100-sxm-40gb"), "bf16"), 312e12);
  EXPECT_EQ(*PeakFlops(*LoadDeviceProfile("h200-sxm"), "bf16"), 989.4e12);
}

TEST(DeviceProfileTest, UnknownFormatNamesTheKnownOnes) {
  const auto peak = PeakFlops(*LoadDeviceProfile("v100-sxm2-16gb"), "bf16");
  EXPECT_EQ(peak.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(peak.status().message()),
              AllOf(HasSubstr("V100-SXM2-16GB"), HasSubstr("\"bf16\""),
                    HasSubstr("fp16, fp32")));
}

TEST(DeviceProfileTest, EmptyProfileReportsEveryMissingFigure) {
  const std::string message(
      ValidateDeviceProfile("x", DeviceProfile()).message());
  for (const char* field :
       {"name", "matrix_rates", "num_multiprocessors.value",
        "gemm.matrix_rate.kind", "gemm.launch_seconds.source",
        "memory_bytes_per_second.value", "memory_efficiency.value",
        "memory_bytes.value", "reserved_bytes.kind"}) {
    EXPECT_THAT(message, HasSubstr(absl::StrCat("x: ", field, " is ")));
  }
}

TEST(DeviceProfileTest, RefusesImpossibleFigures) {
  DeviceProfile profile = *LoadDeviceProfile("t4");
  profile.mutable_gemm()->mutable_matrix_rate()->set_value(1.5);
  profile.mutable_kernel_seconds()->set_value(-1);
  profile.mutable_memory_efficiency()->set_value(std::nan(""));
  profile.mutable_reserved_bytes()->set_value(1e12);
  profile.mutable_attention_efficiency()->clear_source();
  profile.add_matrix_rates()->set_format("fp16");
  EXPECT_THAT(std::string(ValidateDeviceProfile("x", profile).message()),
              AllOf(HasSubstr("gemm.matrix_rate.value is 1.5"),
                    HasSubstr("kernel_seconds.value is -1"),
                    HasSubstr("memory_efficiency.value is nan"),
                    HasSubstr("reserved_bytes.value is 1e+12"),
                    HasSubstr("attention_efficiency.source is empty"),
                    HasSubstr("matrix_rates[2].format is \"fp16\" again")));
}

TEST(DeviceProfileTest, ChecksHeadSizesAndRatesOfUnalignedGemms) {
  DeviceProfile profile = *LoadDeviceProfile("t4");
  for (const int size : {128, 64}) {
    AttentionHeadSize* head = profile.add_attention_head_sizes();
    head->set_head_size(size);
    *head->mutable_relative_efficiency() = profile.memory_efficiency();
  }
  profile.mutable_attention_head_sizes(0)
      ->mutable_relative_efficiency()
      ->set_value(0);
  profile.mutable_gemm()->mutable_rate_aligned_to_4_bytes()->set_value(2);
  EXPECT_THAT(
      std::string(ValidateDeviceProfile("x", profile).message()),
      AllOf(HasSubstr("attention_head_sizes[0].relative_efficiency.value is 0"),
            HasSubstr("attention_head_sizes[1].head_size is 64, expected more "
                      "than 128"),
            HasSubstr("gemm.rate_aligned_to_4_bytes.value is 2"),
            HasSubstr("gemm.rate_aligned_to_4_bytes.source is empty")));
}

TEST(DeviceProfileTest, ChecksLibrariesOfAttention) {
  DeviceProfile profile = *LoadDeviceProfile("t4");
  AttentionLibrary* library = profile.add_attention_libraries();
  *library->mutable_forward() = profile.memory_efficiency();
  library->mutable_forward()->set_value(0);
  *library->mutable_backward() = profile.memory_efficiency();
  EXPECT_THAT(
      std::string(ValidateDeviceProfile("x", profile).message()),
      AllOf(HasSubstr("attention_libraries[0].kernel is missing, expected a "
                      "library such as CUDNN"),
            HasSubstr("attention_libraries[0].forward.value is 0")));
}

TEST(DeviceProfileTest, UnknownNameListsThePresets) {
  EXPECT_THAT(std::string(LoadDeviceProfile("no-such-gpu").status().message()),
              HasSubstr("t4, v100-sxm2-16gb"));
}

}  // namespace weir::calibrate::device_profile_test
