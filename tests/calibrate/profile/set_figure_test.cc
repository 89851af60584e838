// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/set_figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/runtime.h"

namespace weir::calibrate::set_figure_test {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

DeviceProfile A100() {
  const auto profile = LoadDeviceProfile("a100-sxm-80gb");
  EXPECT_TRUE(profile.ok()) << profile.status();
  return *profile;
}

TEST(SetFigureTest, ReplacesTheFigureAndItsUncertainty) {
  DeviceProfile profile = A100();
  ASSERT_TRUE(
      SetFigure("gemm.sustained_rate", "0.5", ScalarFields::kNone, &profile)
          .ok());
  const Figure& exact = profile.gemm().sustained_rate();
  EXPECT_EQ(exact.value(), 0.5);
  EXPECT_EQ(exact.kind(), Figure::ASSUMED);
  EXPECT_EQ(exact.source(), "--set");
  ASSERT_TRUE(exact.has_relative_error());
  EXPECT_EQ(exact.relative_error(), 0);

  const auto old = SetFigure("gemm.sustained_rate", "0.6+-5%",
                             ScalarFields::kNone, &profile);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(*old, "0.5 (assumed)");
  EXPECT_EQ(profile.gemm().sustained_rate().relative_error(), 0.05);
}

TEST(SetFigureTest, SetsFiguresThatAreAbsentAndThoseOfElements) {
  DeviceProfile profile = A100();
  profile.clear_speed_spread();
  const auto old =
      SetFigure("speed_spread", "0.01", ScalarFields::kNone, &profile);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(*old, "unset");
  EXPECT_EQ(profile.speed_spread().value(), 0.01);

  const double second = profile.matrix_rates(1).peak_flops().value();
  ASSERT_TRUE(SetFigure("matrix_rates[0].peak_flops", "7", ScalarFields::kNone,
                        &profile)
                  .ok());
  EXPECT_EQ(profile.matrix_rates(0).peak_flops().value(), 7);
  EXPECT_EQ(profile.matrix_rates(1).peak_flops().value(), second);
  ASSERT_TRUE(
      SetFigure("matrix_rates[].peak_flops", "8", ScalarFields::kNone, &profile)
          .ok());
  for (const MatrixRate& rate : profile.matrix_rates()) {
    EXPECT_EQ(rate.peak_flops().value(), 8);
  }
}

TEST(SetFigureTest, SwitchesAndSizesBelongToRuntimesOnly) {
  Runtime runtime;
  runtime.set_unfused_softmax(true);
  ASSERT_TRUE(
      SetFigure("unfused_softmax", "false", ScalarFields::kAll, &runtime).ok());
  EXPECT_FALSE(runtime.unfused_softmax());
  ASSERT_TRUE(
      SetFigure("bucket_elements", "4e7", ScalarFields::kAll, &runtime).ok());
  EXPECT_EQ(runtime.bucket_elements(), 4e7);
  const auto status =
      SetFigure("unfused_softmax", "1", ScalarFields::kAll, &runtime).status();
  EXPECT_EQ(status.message(), "expected true or false");
  EXPECT_TRUE(absl::IsNotFound(
      SetFigure("unfused_softmax", "true", ScalarFields::kDoubles, &runtime)
          .status()));
}

TEST(SetFigureTest, RefusesUnknownPathsAndValues) {
  for (const char* path :
       {"", "gemm", "gemm.", "gemm.rate", "matrix_rates",
        "matrix_rates[9].peak_flops", "name", "matrix_rates.peak_flops",
        "gemm[0].matrix_rate", "matrix_rates[x].peak_flops", "kernels[0].m"}) {
    DeviceProfile profile = A100();
    EXPECT_TRUE(absl::IsNotFound(
        SetFigure(path, "1", ScalarFields::kNone, &profile).status()))
        << path;
    EXPECT_EQ(profile.SerializeAsString(), A100().SerializeAsString()) << path;
  }
  for (const char* value :
       {"", "x", "nan", "inf", "1+-5", "1+-%", "1+--5%", "1+-x%", "+-5%"}) {
    DeviceProfile profile = A100();
    const auto status =
        SetFigure("kernel_seconds", value, ScalarFields::kNone, &profile)
            .status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << value;
    EXPECT_THAT(std::string(status.message()), HasSubstr("0.85+-5%")) << value;
  }
}

TEST(SetFigureTest, ListsWhatCanBeSet) {
  EXPECT_THAT(SettablePaths(A100(), ScalarFields::kNone),
              AllOf(Contains("gemm.sustained_rate"), Contains("speed_spread"),
                    Contains("matrix_rates[0].peak_flops"),
                    Not(Contains("name")), Not(Contains("purpose"))));
  EXPECT_THAT(SettablePaths(Runtime(), ScalarFields::kAll),
              AllOf(Contains("exchange_seconds"), Contains("unfused_softmax"),
                    Contains("vocabulary_multiple")));
}

TEST(SetFigureTest, SuggestsTheClosestPath) {
  const std::vector<std::string> known = {"gemm.matrix_rate", "a.base_seconds",
                                          "b.base_seconds", "kernel_seconds"};
  EXPECT_EQ(DidYouMeanPath("matrix_rate", known),
            "; did you mean gemm.matrix_rate?");
  EXPECT_EQ(DidYouMeanPath("x.base_seconds", known),
            "; did you mean a.base_seconds or b.base_seconds?");
  EXPECT_EQ(DidYouMeanPath("kernel_secnds", known),
            "; did you mean kernel_seconds?");
  EXPECT_EQ(DidYouMeanPath("matrx_rate", known),
            "; did you mean gemm.matrix_rate?");
  EXPECT_EQ(DidYouMeanPath("something.else.entirely", known), "");
}

}  // namespace weir::calibrate::set_figure_test
