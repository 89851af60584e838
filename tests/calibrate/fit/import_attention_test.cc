// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/import_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "calibrate/fit/import.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::import_attention_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kHeader[] =
    "pass,batch,heads,sequence_length,head_size,causal,latency_ms\n";

DeviceProfile Start() { return *LoadDeviceProfile("h100-sxm"); }

std::string ErrorOf(absl::string_view text) {
  return std::string(
      ImportMeasurements("x.csv", text, Start(), "s").status().message());
}

struct Truth {
  double forward = 0.7, backward = 0.5, ramp_keys = 300;
};

// Returns rows of both passes, computed by hand: causal attention multiplies
// half of the queries with the keys, and the ramp adds keys to each query.
std::string Rows(const std::vector<int>& lengths, const Truth& truth = {},
                 int head_size = 128) {
  const DeviceProfile start = Start();
  const double peak = *PeakFlops(start, "bf16");
  std::string text = kHeader;
  for (const int s : lengths) {
    for (const bool forward : {true, false}) {
      const double batch = 2, heads = 32, d = head_size;
      const double gemm = 2 * batch * heads * s * d;
      const double flops =
          (forward ? 2 : 5) * gemm * (s / 2.0 + truth.ramp_keys);
      const double seconds =
          start.kernel_seconds().value() +
          flops / (peak * (forward ? truth.forward : truth.backward));
      absl::StrAppendFormat(&text, "%s,2,32,%d,%d,yes,%.9g\n",
                            forward ? "forward" : "backward", s, head_size,
                            seconds * 1e3);
    }
  }
  return text;
}

TEST(ImportAttentionTest, PlantedFiguresComeBack) {
  const auto import = ImportMeasurements("x.csv", Rows({512, 1024, 4096, 8192}),
                                         Start(), "PyTorch 2.9, cuDNN");
  ASSERT_TRUE(import.ok()) << import.status();
  const DeviceProfile& profile = import->profile;
  EXPECT_NEAR(profile.attention_efficiency().value(), 0.7, 1e-3);
  EXPECT_NEAR(profile.attention_backward_efficiency().value(), 0.5, 1e-3);
  EXPECT_NEAR(profile.attention_ramp_keys().value(), 300, 1);
  for (const Figure& figure :
       {profile.attention_efficiency(), profile.attention_backward_efficiency(),
        profile.attention_ramp_keys()}) {
    EXPECT_EQ(figure.kind(), Figure::FITTED);
    EXPECT_THAT(figure.source(),
                AllOf(HasSubstr("PyTorch 2.9, cuDNN: 8 runs"),
                      HasSubstr("with their length left out")));
  }
  EXPECT_THAT(import->report,
              AllOf(HasSubstr("fit: mean |error| 0.0 %"),
                    HasSubstr("cross-validation (a sequence length left out)"),
                    Not(HasSubstr("removed"))));
  // Everything else stays.
  DeviceProfile rest = profile, start = Start();
  for (DeviceProfile* either : {&rest, &start}) {
    either->clear_attention_efficiency();
    either->clear_attention_backward_efficiency();
    either->clear_attention_ramp_keys();
    either->clear_attention_head_sizes();  // one size was measured
    // Factors relative to the speed that was replaced.
    either->clear_attention_libraries();
  }
  EXPECT_EQ(rest.SerializeAsString(), start.SerializeAsString());
}

TEST(ImportAttentionTest, HeadSizesAreRelativeToTheUsualOne) {
  const std::vector<int> lengths = {512, 1024, 4096, 8192};
  const std::string small = Rows({1024, 4096}, {0.35, 0.25, 300}, 64);
  const auto import = ImportMeasurements(
      "x.csv", absl::StrCat(Rows(lengths), small.substr(small.find('\n') + 1)),
      Start(), "s");
  ASSERT_TRUE(import.ok()) << import.status();
  const DeviceProfile& profile = import->profile;
  EXPECT_NEAR(profile.attention_efficiency().value(), 0.7, 1e-3);
  EXPECT_NEAR(profile.attention_ramp_keys().value(), 300, 1);
  ASSERT_EQ(profile.attention_head_sizes_size(), 2);
  EXPECT_EQ(profile.attention_head_sizes(0).head_size(), 64);
  EXPECT_NEAR(profile.attention_head_sizes(0).relative_efficiency().value(),
              0.5, 1e-3);
  EXPECT_EQ(profile.attention_head_sizes(1).head_size(), 128);
  EXPECT_EQ(profile.attention_head_sizes(1).relative_efficiency().value(), 1);
  EXPECT_THAT(import->report, HasSubstr("fit: mean |error| 0.0 %"));
}

TEST(ImportAttentionTest, OneLengthKeepsTheRampOfTheStart) {
  DeviceProfile start = Start();
  const auto import = ImportMeasurements("x.csv", Rows({4096}), start, "s");
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_EQ(import->profile.attention_ramp_keys().source(),
            start.attention_ramp_keys().source());
  EXPECT_THAT(import->report, Not(HasSubstr("cross-validation")));
}

TEST(ImportAttentionTest, ForwardAloneKeepsTheBackwardOfTheStart) {
  const auto import = ImportMeasurements(
      "x.csv", absl::StrCat(kHeader, "forward,2,32,4096,128,yes,2\n"), Start(),
      "s");
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_EQ(import->profile.attention_backward_efficiency().source(),
            Start().attention_backward_efficiency().source());
}

TEST(ImportAttentionTest, MeasuredKernelsOfAttentionAreRemoved) {
  DeviceProfile start = Start();
  for (const auto kind : {MeasuredKernel::GEMM, MeasuredKernel::ATTENTION,
                          MeasuredKernel::ATTENTION}) {
    start.add_kernels()->set_kind(kind);
  }
  const auto import = ImportAttention("x.csv", Rows({1024, 4096}), start, "s");
  ASSERT_TRUE(import.ok()) << import.status();
  ASSERT_EQ(import->profile.kernels_size(), 1);
  EXPECT_EQ(import->profile.kernels(0).kind(), MeasuredKernel::GEMM);
  EXPECT_THAT(import->report,
              HasSubstr("removed 2 measured kernels of fused attention"));
}

TEST(ImportAttentionTest, ReadsShapesBackendAndUnitOfTime) {
  const auto attention = ReadAttention(
      "x.csv",
      "backend,causal,pass,heads,batch,head_size,sequence_length,dtype,seconds,"
      "note\nfa2,no,backward,8,3,64,512,bf16,0.002,\"a, b\"\n");
  ASSERT_TRUE(attention.ok()) << attention.status();
  EXPECT_EQ(attention->backend, "fa2");
  EXPECT_EQ(attention->format, "bf16");
  EXPECT_THAT(attention->lines, ElementsAre(2));
  EXPECT_THAT(attention->seconds, ElementsAre(0.002));
  const models::Kernel& kernel = attention->kernels[0];
  EXPECT_EQ(kernel.batch, 24);
  EXPECT_EQ(kernel.m, 512);
  EXPECT_EQ(kernel.k, 64);
  EXPECT_EQ(kernel.num_gemms, 5);
  EXPECT_EQ(kernel.performed_flops, 5.0 * 2 * 24 * 512 * 512 * 64);
}

TEST(ImportAttentionTest, ErrorsNameLineColumnAndWhatIsExpected) {
  const auto row = [](absl::string_view text) {
    return ErrorOf(absl::StrCat(kHeader, text));
  };
  EXPECT_THAT(row(""), HasSubstr("x.csv:2: has no rows"));
  EXPECT_THAT(row("both,1,8,512,64,yes,1\n"),
              HasSubstr("x.csv:2: pass is \"both\", expected forward or "
                        "backward"));
  EXPECT_THAT(row("forward,1,8,512,64,1,1\n"),
              HasSubstr("x.csv:2: causal is \"1\", expected yes or no"));
  EXPECT_THAT(row("forward,1,8,512,64,yes,1\nforward,1,8,0,64,yes,1\n"),
              HasSubstr("x.csv:3: sequence_length is \"0\""));
  EXPECT_THAT(ErrorOf("pass,batch,heads,sequence_length,head_size,causal\n"
                      "forward,1,8,512,64,yes\n"),
              HasSubstr("x.csv:1: has no column with times"));
  EXPECT_THAT(
      ErrorOf("backend,pass,batch,heads,sequence_length,head_size,causal,"
              "seconds\ncudnn,forward,1,8,512,64,yes,1e-3\n"
              "fa2,forward,1,8,512,64,yes,1e-3\n"),
      HasSubstr("x.csv:3: backend is \"fa2\", expected \"cudnn\""));
}

TEST(ImportAttentionTest, TimesThatNoEfficiencyExplainsAreRefused) {
  Truth truth;
  truth.forward = truth.backward = 700;  // a thousandth of the time
  EXPECT_THAT(ErrorOf(Rows({1024, 4096}, truth)),
              AllOf(HasSubstr("x.csv: no efficiency explains these times"),
                    HasSubstr("x.csv: was not measured on H100")));
  truth.forward = truth.backward = 1e-5;
  EXPECT_THAT(ErrorOf(Rows({1024, 4096}, truth)),
              HasSubstr("x.csv: no efficiency explains these times"));
}

}  // namespace weir::calibrate::import_attention_test
