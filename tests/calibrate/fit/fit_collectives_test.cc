// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace weir::calibrate::fit_collectives_test {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::vector<CollectiveSample> SamplesOf(const CollectiveModel& model,
                                        bool nvls) {
  std::vector<CollectiveSample> samples;
  for (const auto kind :
       {models::CollectiveKind::kAllReduce, models::CollectiveKind::kAllGather,
        models::CollectiveKind::kReduceScatter,
        models::CollectiveKind::kAllToAll}) {
    for (const int n : {2, 4, 8}) {
      for (int64_t size = 1 << 10; size < 1 << 30; size *= 2) {
        const double bytes = size;
        CollectiveSample sample{kind, bytes, {}, 0};
        sample.group.num_ranks = sample.group.ranks_per_node = n;
        sample.group.intra_bytes_per_second = 450e9;
        sample.group.nvls = nvls;
        sample.seconds =
            CheapestCollective(model, kind, bytes, sample.group).Seconds();
        samples.push_back(sample);
      }
    }
  }
  return samples;
}

CollectiveModel Planted() {
  CollectiveModel model = CollectiveStart(NcclGeneration::kHopper);
  model.mutable_ll()->mutable_base_seconds()->set_value(4.5e-6);
  model.mutable_ll()->mutable_nvlink_hop_seconds()->set_value(0.8e-6);
  model.mutable_ll()->mutable_max_bytes_per_second()->set_value(11e9);
  model.mutable_ll128()->mutable_base_seconds()->set_value(6e-6);
  model.mutable_ll128()->mutable_max_bytes_per_second()->set_value(170e9);
  model.mutable_simple()->mutable_base_seconds()->set_value(14e-6);
  model.mutable_link_efficiency()->set_value(0.79);
  model.mutable_local_bytes_per_second()->set_value(1.2e12);
  model.mutable_pairs()->mutable_peer_seconds()->set_value(0.2e-6);
  model.mutable_nvls_efficiency()->set_value(0.65);
  return model;
}

TEST(FitCollectivesTest, RecoversWhatMadeTheSamples) {
  const CollectiveModel planted = Planted();
  const auto fit = FitCollectives(CollectiveStart(NcclGeneration::kHopper),
                                  SamplesOf(planted, true), "planted");
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_LT(fit->errors.mean_absolute, 2e-3);
  EXPECT_LT(std::abs(fit->errors.worst), 2e-2);
  const CollectiveModel& model = fit->model;
  EXPECT_NEAR(model.ll().base_seconds().value(), 4.5e-6, 0.1e-6);
  EXPECT_NEAR(model.ll().nvlink_hop_seconds().value(), 0.8e-6, 0.02e-6);
  EXPECT_NEAR(model.link_efficiency().value(), 0.79, 0.01);
  EXPECT_NEAR(model.nvls_efficiency().value(), 0.65, 0.01);
  EXPECT_NEAR(model.pairs().peer_seconds().value(), 0.2e-6, 0.02e-6);
}

TEST(FitCollectivesTest, OnlyWhatTheSamplesSpeakAboutIsFitted) {
  const CollectiveModel start = CollectiveStart(NcclGeneration::kHopper);
  std::vector<CollectiveSample> samples = SamplesOf(Planted(), false);
  samples.resize(20);  // all-reduces of two ranks
  const auto fit = FitCollectives(start, samples, "a source");
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_THAT(fit->fitted, Contains("link_efficiency"));
  EXPECT_THAT(fit->fitted, Not(Contains(HasSubstr("pairs"))));
  EXPECT_THAT(fit->fitted, Not(Contains(HasSubstr("nvls"))));
  EXPECT_EQ(fit->model.link_efficiency().kind(), Figure::FITTED);
  EXPECT_EQ(fit->model.link_efficiency().source(), "a source");
  EXPECT_EQ(fit->model.pairs().SerializeAsString(),
            start.pairs().SerializeAsString());
  EXPECT_EQ(fit->model.nvls_efficiency().source(),
            start.nvls_efficiency().source());
}

TEST(FitCollectivesTest, SameSamplesSameModel) {
  const std::vector<CollectiveSample> samples = SamplesOf(Planted(), true);
  const CollectiveModel start = CollectiveStart(NcclGeneration::kHopper);
  const auto once = FitCollectives(start, samples, "x");
  const auto again = FitCollectives(start, samples, "x");
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_EQ(once->model.SerializeAsString(), again->model.SerializeAsString());
}

TEST(FitCollectivesTest, ImpossibleSamplesAreRefused) {
  const CollectiveModel start = CollectiveStart(NcclGeneration::kHopper);
  EXPECT_EQ(FitCollectives(start, {}, "x").status().code(),
            absl::StatusCode::kInvalidArgument);
  std::vector<CollectiveSample> samples = SamplesOf(Planted(), true);
  samples[7].seconds = 0;
  const absl::Status status = FitCollectives(start, samples, "x").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("all_reduce of 131072"));
}

}  // namespace weir::calibrate::fit_collectives_test
