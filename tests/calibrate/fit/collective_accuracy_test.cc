// SPDX-License-Identifier: Apache-2.0
// Accuracy of the presets' collective model parameters on the measurements that
// they were fitted to, and of fits on rows that they have not seen. Needs
// ../shared/data and is skipped without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/error_statistics.h"
#include "calibrate/fit/collective_table.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/fit_collectives.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate::collective_accuracy_test {

const std::filesystem::path kData =
    std::filesystem::path(WEIR_SOURCE_DIR) / "../shared/data";

std::string Contents(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Device {
  const char* preset;
  NcclGeneration generation;
  const char* table;  // below aiconfigurator/
};

void PrintTo(const Device& device, std::ostream* out) { *out << device.preset; }

std::vector<CollectiveSample> SamplesOf(const Device& device,
                                        const char* type) {
  CollectiveGroup node;
  const CollectiveModel nccl = NcclDefaults(device.generation);
  node.intra_bytes_per_second = nccl.link_bytes_per_second().value();
  // Switches reduce floating-point numbers only.
  node.nvls = nccl.has_nvls_efficiency() && type == std::string("half");
  const auto path = kData / "aiconfigurator" / device.table;
  auto samples =
      ReadCollectiveTable(path.string(), Contents(path), type, 1024, node);
  EXPECT_TRUE(samples.ok()) << samples.status();
  return samples.ok() ? *samples : std::vector<CollectiveSample>();
}

// Reads vTrain's all-reduces. With `mesh`, rings are those of a DGX-1's hybrid
// mesh: one link between two GPUs, two rings per direction for four, three for
// eight.
std::vector<CollectiveSample> VTrainSamples(const char* device, bool mesh) {
  std::vector<CollectiveSample> samples;
  const double links[] = {25e9, 100e9, 150e9};
  for (int i = 0; i < 3; ++i) {
    CollectiveGroup group;
    group.num_ranks = group.ranks_per_node = 2 << i;
    group.intra_bytes_per_second = mesh ? links[i] : 300e9;
    const auto path =
        kData / "nccl" / absl::StrCat(device, "_AR_GPU", 2 << i, "_pow2.csv");
    const auto part = ReadAllReduceTable(path.string(), Contents(path), group);
    EXPECT_TRUE(part.ok()) << part.status();
    if (part.ok()) samples.insert(samples.end(), part->begin(), part->end());
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
  std::vector<std::pair<CollectiveKind, int>> keys;
  for (const CollectiveSample& sample : samples) {
    keys.emplace_back(sample.kind, sample.group.num_ranks);
  }
  return GroupsOf(keys);
}

class CollectiveAccuracyTest : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kData / "aiconfigurator")) {
      GTEST_SKIP() << "no measurements in " << kData;
    }
  }
};

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
    testing::Values(Device{"a100-sxm-80gb", NcclGeneration::kAmpere,
                           "a100_sxm_comm_nccl_2.27.3_nccl_perf.csv"},
                    Device{"h100-sxm", NcclGeneration::kHopper,
                           "h100_sxm_comm_nccl_2.29.2_nccl_perf.csv"},
                    Device{"h200-sxm", NcclGeneration::kHopper,
                           "h200_sxm_comm_nccl_2.29.2_nccl_perf.csv"},
                    Device{"b200-sxm", NcclGeneration::kBlackwell,
                           "b200_sxm_comm_nccl_2.28.9_nccl_perf.csv"}),
    [](const auto& param) {
      return std::string(param.param.preset).substr(0, 4);
    });

TEST(CollectiveAccuracyOfMeshTest, V100HoldsOnItsAllReduces) {
  if (!std::filesystem::exists(kData / "nccl")) {
    GTEST_SKIP() << "no measurements in " << kData;
  }
  const auto profile = LoadDeviceProfile("v100-sxm2-16gb");
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto samples = VTrainSamples("v100", true);
  ASSERT_EQ(samples.size(), 33u);
  EXPECT_LT(Errors(profile->collectives(), samples).mean_absolute, 0.05);
  EXPECT_LT(CrossErrors(CollectiveStart(NcclGeneration::kVolta), samples,
                        RowFolds(33, 10))
                .mean_absolute,
            0.1);
}

TEST(CollectiveAccuracyOfMeshTest, A100HoldsOnAnotherMachine) {
  if (!std::filesystem::exists(kData / "nccl")) {
    GTEST_SKIP() << "no measurements in " << kData;
  }
  const auto profile = LoadDeviceProfile("a100-sxm-80gb");
  ASSERT_TRUE(profile.ok()) << profile.status();
  const auto samples = VTrainSamples("a100", false);
  ASSERT_EQ(samples.size(), 33u);
  EXPECT_LT(Errors(profile->collectives(), samples).mean_absolute, 0.1);
}

}  // namespace weir::calibrate::collective_accuracy_test
