// SPDX-License-Identifier: Apache-2.0
// Accuracy of the presets' collective model parameters on the measurements that
// they were fitted to, and of fits on rows that they have not seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/error_statistics.h"
#include "base/files.h"
#include "calibrate/fit/collective_table.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/fit_collectives.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::collective_accuracy_test {

struct Device {
  const char* preset;
  NcclGeneration generation;
  const char* table;
};

void PrintTo(const Device& device, std::ostream* out) { *out << device.preset; }

std::vector<CollectiveSample> Read(const std::string& table, const char* type,
                                   const CollectiveGroup& node) {
  const std::string path =
      absl::StrCat(WEIR_SOURCE_DIR "/results/published/kernels/", table);
  const auto text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  if (!text.ok()) return {};
  const auto samples = ReadCollectiveTable(path, *text, type, node);
  EXPECT_TRUE(samples.ok()) << samples.status();
  return samples.ok() ? *samples : std::vector<CollectiveSample>();
}

std::vector<CollectiveSample> SamplesOf(const Device& device,
                                        const char* type) {
  CollectiveGroup node;
  const CollectiveModel nccl = NcclDefaults(device.generation);
  node.intra_bytes_per_second = nccl.link_bytes_per_second().value();
  // Switches reduce floating-point numbers only.
  node.nvls = nccl.has_nvls_efficiency() && type == std::string("half");
  return Read(device.table, type, node);
}

// Reads vTrain's all-reduces. With `mesh`, rings are those of a DGX-1's hybrid
// mesh: one link between two GPUs, two rings per direction for four, three for
// eight.
std::vector<CollectiveSample> VTrainSamples(const std::string& table,
                                            bool mesh) {
  CollectiveGroup node;
  node.intra_bytes_per_second = 300e9;
  std::vector<CollectiveSample> samples = Read(table, "float", node);
  for (CollectiveSample& sample : samples) {
    const int n = sample.group.num_ranks;
    if (!mesh) continue;
    sample.group.intra_bytes_per_second =
        n == 2 ? 25e9 : (n == 4 ? 100e9 : 150e9);
  }
  return samples;
}

std::vector<double> Measured(const std::vector<CollectiveSample>& samples) {
  std::vector<double> seconds;
  for (const CollectiveSample& sample : samples) {
    seconds.push_back(sample.seconds);
  }
  return seconds;
}

ErrorStatistics Errors(const CollectiveModel& model,
                       const std::vector<CollectiveSample>& samples) {
  const ErrorStatistics errors =
      SummarizeErrors(PredictCollectives(model, samples), Measured(samples));
  std::cout << Describe(errors) << "\n";
  return errors;
}

ErrorStatistics CrossErrors(const CollectiveModel& start,
                            const std::vector<CollectiveSample>& samples,
                            const std::vector<int>& groups) {
  const auto predicted = CrossValidate(
      groups,
      [&](absl::Span<const int> fitted, absl::Span<const int> left_out)
          -> absl::StatusOr<std::vector<double>> {
        std::vector<CollectiveSample> seen, unseen;
        for (int row : fitted) seen.push_back(samples[row]);
        for (int row : left_out) unseen.push_back(samples[row]);
        auto fit = FitCollectives(start, seen, "folds");
        if (!fit.ok()) return fit.status();
        return PredictCollectives(fit->model, unseen);
      });
  EXPECT_TRUE(predicted.ok()) << predicted.status();
  if (!predicted.ok()) return {};
  const ErrorStatistics errors = SummarizeErrors(*predicted, Measured(samples));
  std::cout << Describe(errors) << "\n";
  return errors;
}

std::vector<int> KindsAndRanks(const std::vector<CollectiveSample>& samples) {
  std::vector<std::pair<models::CollectiveKind, int>> keys;
  for (const CollectiveSample& sample : samples) {
    keys.emplace_back(sample.kind, sample.group.num_ranks);
  }
  return GroupsOf(keys);
}

class CollectiveAccuracyTest : public testing::TestWithParam<Device> {};

TEST_P(CollectiveAccuracyTest, PresetHoldsFromAKibibyteUp) {
  const auto profile = LoadDeviceProfile(GetParam().preset);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto samples = SamplesOf(GetParam(), "half");
  ASSERT_EQ(samples.size(), 240u);
  EXPECT_LT(Errors(profile->collectives(), samples).mean_absolute, 0.065);
  // Bytes moved as int8 are not part of the fit.
  EXPECT_LT(Errors(profile->collectives(), SamplesOf(GetParam(), "int8"))
                .mean_absolute,
            0.08);
}

TEST_P(CollectiveAccuracyTest, PresetIsTheFit) {
  const auto profile = LoadDeviceProfile(GetParam().preset);
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto samples = SamplesOf(GetParam(), "half");
  const auto fit =
      FitCollectives(CollectiveStart(GetParam().generation), samples, "again");
  ASSERT_TRUE(fit.ok()) << fit.status();
  for (const CollectiveFigure& figure : CollectiveFigures()) {
    if (!figure.has(fit->model)) continue;
    const double found = figure.get(profile->collectives()).value();
    EXPECT_NEAR(found, figure.get(fit->model).value(), 0.02 * found)
        << figure.name;
  }
}

TEST_P(CollectiveAccuracyTest, HoldsForCollectivesAndRanksNeverSeen) {
  const auto samples = SamplesOf(GetParam(), "half");
  EXPECT_LT(CrossErrors(CollectiveStart(GetParam().generation), samples,
                        KindsAndRanks(samples))
                .mean_absolute,
            0.1);
}

INSTANTIATE_TEST_SUITE_P(
    Devices, CollectiveAccuracyTest,
    testing::Values(
        Device{"a100-sxm-80gb", NcclGeneration::kAmpere, "nccl_a100.csv"},
        Device{"h100-sxm", NcclGeneration::kHopper, "nccl_h100.csv"},
        Device{"h200-sxm", NcclGeneration::kHopper, "nccl_h200.csv"},
        Device{"b200-sxm", NcclGeneration::kBlackwell, "nccl_b200.csv"}),
    [](const auto& param) {
      return std::string(param.param.preset).substr(0, 4);
    });

TEST(CollectiveAccuracyOfMeshTest, V100HoldsOnItsAllReduces) {
  const auto profile = LoadDeviceProfile("v100-sxm2-16gb");
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto samples = VTrainSamples("nccl_vtrain_v100.csv", true);
  ASSERT_EQ(samples.size(), 33u);
  EXPECT_LT(Errors(profile->collectives(), samples).mean_absolute, 0.05);
  EXPECT_LT(CrossErrors(CollectiveStart(NcclGeneration::kVolta), samples,
                        RowFolds(33, 10))
                .mean_absolute,
            0.1);
}

TEST(CollectiveAccuracyOfMeshTest, A100HoldsOnAnotherMachine) {
  const auto profile = LoadDeviceProfile("a100-sxm-80gb");
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto samples = VTrainSamples("nccl_vtrain_a100.csv", false);
  ASSERT_EQ(samples.size(), 33u);
  EXPECT_LT(Errors(profile->collectives(), samples).mean_absolute, 0.1);
}

}  // namespace weir::calibrate::collective_accuracy_test
