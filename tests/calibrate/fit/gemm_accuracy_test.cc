// SPDX-License-Identifier: Apache-2.0
// Accuracy of GEMM predictions, also on samples that no fit has seen. The
// tables are every 13th weight shape of the published ones, or every third: the
// model fits the B200 less well, so that a fit to few shapes depends on which.
// With WEIR_DATA, the complete tables are tested too.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/import_gemms.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::gemm_accuracy_test {

struct Table {
  std::string device;
  std::string folder;  // of the complete tables; empty: the committed table
};

// Without this, test names contain addresses.
void PrintTo(const Table& table, std::ostream* out) { *out << table.device; }

std::vector<Table> Tables() {
  std::vector<Table> tables;
  const char* data = std::getenv("WEIR_DATA");
  for (const char* device : {"a100", "h100", "h200", "b200"}) {
    tables.push_back({device, ""});
    if (data != nullptr) tables.push_back({device, data});
  }
  return tables;
}

class GemmAccuracyTest : public testing::TestWithParam<Table> {
 protected:
  void SetUp() override {
    const auto& [device, folder] = GetParam();
    std::string path = absl::StrCat(
        WEIR_SOURCE_DIR "/results/published/kernels/gemm_", device, ".csv");
    if (!folder.empty()) {
      path = absl::StrCat(folder, "/aiconfigurator2/gemm_", device,
                          "_sxm_bf16.csv");
    }
    const absl::StatusOr<std::string> text = ReadFile(path);
    ASSERT_TRUE(text.ok()) << text.status();
    const auto gemms = ReadGemms(path, *text);
    ASSERT_TRUE(gemms.ok()) << gemms.status();
    samples_ = gemms->samples;
    for (const GemmSample& sample : samples_) {
      seconds_.push_back(sample.seconds);
    }
    profile_ = *LoadDeviceProfile(device == "a100" ? "a100-sxm-80gb"
                                                   : device + "-sxm");
    machine_ = *MachineOf(profile_, "bf16");
  }

  double UnseenError(const std::vector<int>& groups) {
    const auto predicted = CrossValidateGemms(
        machine_, GenericGemms(machine_, 0.5), samples_, groups);
    EXPECT_TRUE(predicted.ok()) << predicted.status();
    const ErrorStatistics errors = SummarizeErrors(*predicted, seconds_);
    std::cout << GetParam().device << ": " << Describe(errors) << "\n";
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
  std::cout << GetParam().device << ": " << Describe(errors) << "\n";
  EXPECT_LT(errors.mean_absolute, 0.08);
  EXPECT_LT(std::abs(errors.bias), 0.02);
}

TEST_P(GemmAccuracyTest, UnseenWeightShapesAreWithinEightPercent) {
  std::vector<int> groups = WeightShapes(samples_);
  for (int& group : groups) group %= 10;  // every (n, k) is left out as a whole
  EXPECT_LT(UnseenError(groups), 0.08);
}

TEST_P(GemmAccuracyTest, UnseenRowsAreWithinEightPercent) {
  EXPECT_LT(UnseenError(RowFolds(static_cast<int>(samples_.size()), 10)), 0.08);
}

INSTANTIATE_TEST_SUITE_P(Devices, GemmAccuracyTest, testing::ValuesIn(Tables()),
                         [](const auto& info) {
                           return info.param.device + (info.param.folder.empty()
                                                           ? ""
                                                           : "_complete");
                         });

}  // namespace weir::calibrate::gemm_accuracy_test
