// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/collective_residual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::calibrate::collective_residual_test {

using testing::HasSubstr;

// Returns samples in which all-reduces of 8 ranks take twice the model's time.
// With `only_eight`, returns only these, which a fit can follow.
std::vector<CollectiveSample> Samples(bool only_eight) {
  const CollectiveModel model = CollectiveStart(NcclGeneration::kHopper);
  std::vector<CollectiveSample> samples;
  for (const auto kind :
       {models::CollectiveKind::kAllReduce, models::CollectiveKind::kAllGather,
        models::CollectiveKind::kReduceScatter}) {
    for (const int n : {2, 4, 8}) {
      const bool odd = kind == models::CollectiveKind::kAllReduce && n == 8;
      if (only_eight && !odd) continue;
      for (int64_t size = 1 << 10; size < 1 << 30; size *= 4) {
        const double bytes = size;
        CollectiveSample sample{kind, bytes, {}, 0};
        sample.group.num_ranks = sample.group.ranks_per_node = n;
        sample.group.intra_bytes_per_second = 450e9;
        sample.seconds =
            (odd ? 2 : 1) *
            CheapestCollective(model, kind, bytes, sample.group).Seconds();
        samples.push_back(sample);
      }
    }
  }
  return samples;
}

Figure Residual(const std::vector<CollectiveSample>& samples,
                double* fit_error) {
  const CollectiveModel start = CollectiveStart(NcclGeneration::kHopper);
  const auto fit = FitCollectives(start, samples, "planted");
  EXPECT_TRUE(fit.ok()) << fit.status();
  *fit_error = fit->errors.mean_absolute;
  const auto residual = CollectiveResidual(start, samples, *fit, "planted");
  EXPECT_TRUE(residual.ok()) << residual.status();
  return *residual;
}

TEST(CollectiveResidualTest, WhatIsUnlikeAllElseCountsAsUnseen) {
  double fit_error = 0;
  const Figure residual = Residual(Samples(false), &fit_error);
  // A ninth of the samples is predicted at half of its measured time.
  EXPECT_GT(residual.value(), 1.25 * fit_error);
  EXPECT_GT(residual.value(), 1.25 * 0.4 / 9);
  EXPECT_THAT(residual.source(), HasSubstr("left out"));
}

TEST(CollectiveResidualTest, OneCollectiveAloneIsItsOwnJudgeAndSaysSo) {
  double fit_error = 0;
  const Figure residual = Residual(Samples(true), &fit_error);
  EXPECT_NEAR(residual.value(), 1.2533 * fit_error, 1e-3);
  EXPECT_THAT(residual.source(), HasSubstr("errors on the fitted data"));
}

}  // namespace weir::calibrate::collective_residual_test
