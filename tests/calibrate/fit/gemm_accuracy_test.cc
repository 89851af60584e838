// SPDX-License-Identifier: Apache-2.0
// Accuracy of GEMM predictions on samples that no fit has seen:
// github.com/ai-dynamo/aiconfigurator systems/data/<gpu>/gemm, bf16, commit
// 095f58a5.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/import_gemms.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::gemm_accuracy_test {

// The parameter is a std::string, so that test names contain no address.
class GemmAccuracyTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto path = std::filesystem::path(WEIR_SOURCE_DIR) /
                      "../shared/data/aiconfigurator" /
                      absl::StrCat(GetParam(), "_sxm_gemm_bf16_subset.csv");
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << path << " is not there";
    }
    const auto text = ReadFile(path);
    ASSERT_TRUE(text.ok()) << text.status();
    const auto gemms = ReadGemms(path.string(), *text);
    ASSERT_TRUE(gemms.ok()) << gemms.status();
    samples_ = gemms->samples;
    for (const GemmSample& sample : samples_) {
      seconds_.push_back(sample.seconds);
    }
    profile_ = *LoadDeviceProfile(GetParam() == "a100" ? "a100-sxm-80gb"
                                                       : GetParam() + "-sxm");
    machine_ = *MachineOf(profile_, "bf16");
  }

  double UnseenError(const std::vector<int>& groups) {
    const auto predicted = CrossValidateGemms(
        machine_, GenericGemms(machine_, 0.5), samples_, groups);
    EXPECT_TRUE(predicted.ok()) << predicted.status();
    const ErrorStatistics errors = SummarizeErrors(*predicted, seconds_);
    std::cout << GetParam() << ": " << Describe(errors) << "\n";
    return errors.mean_absolute;
  }

  std::vector<GemmSample> samples_;
  std::vector<double> seconds_;
  DeviceProfile profile_;
  GemmMachine machine_;
};

TEST_P(GemmAccuracyTest, ThePresetIsTheFit) {
  const ErrorStatistics errors = SummarizeErrors(
      PredictGemms(machine_, profile_.gemm(), samples_), seconds_);
  std::cout << GetParam() << ": " << Describe(errors) << "\n";
  EXPECT_LT(errors.mean_absolute, 0.06);
}

TEST_P(GemmAccuracyTest, UnseenWeightShapesAreWithinEightPercent) {
  std::vector<int> groups = WeightShapes(samples_);
  for (int& group : groups) group %= 10;  // every (n, k) is left out as a whole
  EXPECT_LT(UnseenError(groups), 0.08);
}

TEST_P(GemmAccuracyTest, UnseenRowsAreWithinEightPercent) {
  EXPECT_LT(UnseenError(RowFolds(static_cast<int>(samples_.size()), 10)), 0.08);
}

INSTANTIATE_TEST_SUITE_P(Devices, GemmAccuracyTest,
                         testing::Values("a100", "h100", "h200"),
                         [](const auto& info) { return info.param; });

}  // namespace weir::calibrate::gemm_accuracy_test
