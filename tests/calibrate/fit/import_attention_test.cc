// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/import_attention.h"

#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "models/layer_work.h"
#include "models/model.h"

namespace weir::calibrate::import_attention_test {

using testing::HasSubstr;

constexpr char kHeader[] =
    "attention_pass,batch,heads,sequence_length,head_size,causal,seconds,"
    "kernel,"
    "dtype\n";

// Returns a profile whose attention is that of `planted`.
DeviceProfile Planted(double forward, double backward, double ramp) {
  DeviceProfile profile = *LoadDeviceProfile("h200-sxm");
  profile.mutable_attention_efficiency()->set_value(forward);
  profile.mutable_attention_backward_efficiency()->set_value(backward);
  profile.mutable_attention_ramp_keys()->set_value(ramp);
  return profile;
}

// Returns the times that the profile predicts for the attention of a block of
// Llama-2-7B, as the simulator prices it.
std::string Rows(const DeviceProfile& profile,
                 const std::vector<int>& lengths) {
  const Model model = *models::LoadModel("llama-2-7b");
  const double peak = *PeakFlops(profile, "bf16");
  std::string text = kHeader;
  for (const int length : lengths) {
    models::WorkSpec spec;
    spec.microbatch_size = 2;
    spec.sequence_length = length;
    spec.flash_attention = true;
    const models::LayerWork block = models::LayersOf(model, spec)[1];
    const auto add = [&](const char* pass, const auto& kernels) {
      for (const models::Kernel& kernel : kernels) {
        if (kernel.kind != models::Kernel::Kind::kAttention) continue;
        absl::StrAppend(&text, pass, ",2,32,", length, ",128,1,",
                        KernelSeconds(profile, peak, kernel), ",cudnn,bf16\n");
      }
    };
    add("forward", block.forward);
    add("backward", block.backward_input);
  }
  return text;
}

TEST(ImportAttentionTest, TheFrameworksAttentionReplacesThatOfTheProfile) {
  const DeviceProfile planted = Planted(0.62, 0.47, 220);
  const DeviceProfile start = Planted(0.3, 0.3, 100);
  const auto import = ImportMeasurements(
      "a.csv", Rows(planted, {512, 1024, 2048, 4096}), start, "PyTorch 2.9");
  ASSERT_TRUE(import.ok()) << import.status();
  const DeviceProfile& profile = import->profile;
  EXPECT_NEAR(profile.attention_efficiency().value(), 0.62, 1e-3);
  EXPECT_NEAR(profile.attention_backward_efficiency().value(), 0.47, 1e-3);
  EXPECT_NEAR(profile.attention_ramp_keys().value(), 220, 1);
  EXPECT_EQ(profile.attention_efficiency().kind(), Figure::FITTED);
  EXPECT_THAT(profile.attention_efficiency().source(),
              HasSubstr("PyTorch 2.9: 8 runs of attention (cudnn), mean"));
  EXPECT_THAT(import->report, HasSubstr("fit: mean |error| 0.0 %"));
  EXPECT_EQ(profile.gemm().SerializeAsString(),
            start.gemm().SerializeAsString());
}

TEST(ImportAttentionTest, OneLengthKeepsTheRampAndOnePassTheOther) {
  const DeviceProfile start = Planted(0.3, 0.3, 100);
  const auto import = ImportMeasurements(
      "a.csv",
      absl::StrCat(kHeader, "forward,1,32,2048,128,1,1e-4,cudnn,bf16\n"), start,
      "s");
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_EQ(import->profile.attention_ramp_keys().value(), 100);
  EXPECT_EQ(import->profile.attention_backward_efficiency().value(), 0.3);
  EXPECT_NE(import->profile.attention_efficiency().value(), 0.3);
}

TEST(ImportAttentionTest, ErrorsNameLineColumnFoundAndExpected) {
  const auto error = [](const std::string& rows) {
    return std::string(ImportMeasurements("a.csv", absl::StrCat(kHeader, rows),
                                          *LoadDeviceProfile("h200-sxm"), "s")
                           .status()
                           .message());
  };
  EXPECT_THAT(error("sideways,1,32,2048,128,1,1e-4,x,bf16\n"),
              HasSubstr("a.csv:2: attention_pass is \"sideways\", expected "
                        "forward or backward"));
  EXPECT_THAT(error("forward,1,32,0,128,1,1e-4,x,bf16\n"),
              HasSubstr("a.csv:2: sequence_length is \"0\", expected 1 to"));
  EXPECT_THAT(error("forward,1,32,9,128,1,1e-4,x,bf16\n"
                    "forward,1,32,9,128,1,1e-4,y,bf16\n"),
              HasSubstr("a.csv:3: kernel is \"y\", expected \"x\" as in the"));
  EXPECT_THAT(error(""), HasSubstr("a.csv:2: has no rows"));
  EXPECT_THAT(error("forward,1,32,9,128,1,1e-4,x,int4\n"),
              HasSubstr("has no rate for number format \"int4\""));
}

}  // namespace weir::calibrate::import_attention_test
