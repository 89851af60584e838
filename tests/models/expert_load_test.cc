// SPDX-License-Identifier: Apache-2.0
// Compares the expected load of experts with closed forms.
#include "models/expert_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace weir::models::expert_load_test {

Transformer Experts(uint32_t num_experts, uint32_t experts_per_token) {
  Transformer transformer;
  transformer.set_num_experts(num_experts);
  transformer.set_experts_per_token(experts_per_token);
  return transformer;
}

// With concentration 1 the shares are the gaps between n - 1 uniform points,
// the largest of which is H(n) / n long.
TEST(ExpertLoadTest, UniformSharesHaveHarmonicMaxima) {
  double harmonic = 0;
  for (int n = 1; n <= 512; ++n) {
    harmonic += 1.0 / n;
    EXPECT_NEAR(LargestShare(n, 1), harmonic, 1e-9 * harmonic) << n;
  }
}

// The larger of two shares is 1/2 plus the mean absolute deviation of
// Beta(a, a), 1 / (B(a, a) a 4^a).
TEST(ExpertLoadTest, TwoSharesFollowABetaDistribution) {
  for (const double a : {0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 1000.0}) {
    const double log_beta = 2 * std::lgamma(a) - std::lgamma(2 * a);
    const double deviation =
        std::exp(-log_beta - std::log(a) - a * std::log(4.0));
    EXPECT_NEAR(LargestShare(2, a), 1 + 2 * deviation, 1e-9) << a;
  }
}

TEST(ExpertLoadTest, LargestShareFallsWithTheConcentration) {
  for (const double n : {2.0, 8.0, 256.0}) {
    double before = n;
    for (double a = 1e-3; a < 1e7; a *= 3) {
      const double now = LargestShare(n, a);
      EXPECT_LT(now, before) << n << " " << a;
      EXPECT_GT(now, 1);
      before = now;
    }
  }
}

TEST(ExpertLoadTest, ConcentrationInvertsTheLargestShare) {
  for (const double n : {2.0, 8.0, 64.0, 384.0}) {
    for (const double ratio : {1 + 1e-9, 1.0001, 1.01, 1.5, 1.9}) {
      EXPECT_NEAR(LargestShare(n, ConcentrationFor(n, ratio)), ratio,
                  1e-9 * ratio);
    }
  }
}

// With two experts and an imbalance of 1.5, the larger share is 3/4 in
// expectation, so that shares are uniform: E[min(2 X, C)] = C - C^2 / 4.
TEST(ExpertLoadTest, CapacityCutsTheLoadOfFullExperts) {
  Transformer two = Experts(2, 1);
  two.set_unpadded_capacity(true);
  for (const double capacity : {0.25, 0.5, 1.0, 1.25, 1.9}) {
    two.set_capacity_factor(capacity);
    EXPECT_NEAR(AcceptedTokens(two, 1.5), capacity - capacity * capacity / 4,
                1e-9);
    EXPECT_DOUBLE_EQ(AcceptedTokens(two, 1), std::min(capacity, 1.0));
    // The more loaded GPU takes no more than the capacity.
    EXPECT_NEAR(ExpertLoad(two, 1.5, 2) * AcceptedTokens(two, 1.5),
                std::min(capacity, 1.5), 1e-9);
  }
  two.set_capacity_factor(2);
  EXPECT_DOUBLE_EQ(AcceptedTokens(two, 1.5), 1);
  two.set_capacity_factor(0);
  EXPECT_DOUBLE_EQ(AcceptedTokens(two, 1.5), 1);
  // Padded experts all have the same number of tokens.
  two.set_capacity_factor(1.25);
  two.set_unpadded_capacity(false);
  EXPECT_EQ(ExpertLoad(two, 1.5, 2), 1);
}

TEST(ExpertLoadTest, BalancedExpertsLoadAllGpusAlike) {
  const Transformer transformer = Experts(64, 8);
  for (const double imbalance : {0.0, 1.0}) {
    EXPECT_EQ(ExpertLoad(transformer, imbalance, 8), 1);
  }
  EXPECT_EQ(ExpertLoad(transformer, 3, 1), 1);
  EXPECT_EQ(ExpertLoad(Transformer(), 3, 8), 1);
}

// A GPU with one expert has the load of that expert; with more experts, loads
// average out.
TEST(ExpertLoadTest, MoreExpertsPerGpuAverageOut) {
  const Transformer transformer = Experts(64, 8);
  EXPECT_NEAR(ExpertLoad(transformer, 3, 64), 3, 3e-9);
  double before = 3.1;
  for (const int gpus : {64, 32, 16, 8, 4, 2}) {
    const double load = ExpertLoad(transformer, 3, gpus);
    EXPECT_LT(load, before) << gpus;
    EXPECT_GT(load, 1) << gpus;
    before = load;
  }
  // Sums of Dirichlet shares: two GPUs share as in TwoSharesFollow...
  const double a = 32 * ConcentrationFor(64, 3);
  EXPECT_EQ(ExpertLoad(transformer, 3, 2), LargestShare(2, a));
}

// The experts of a GPU are at most all that a token has.
TEST(ExpertLoadTest, TokensHaveDifferentExperts) {
  const Transformer transformer = Experts(8, 4);
  EXPECT_EQ(LargestImbalance(transformer), 2);
  for (const int gpus : {2, 4, 8}) {
    EXPECT_LE(ExpertLoad(transformer, 2, gpus),
              gpus * std::min(8.0 / gpus, 4.0) / 4);
  }
}

}  // namespace weir::models::expert_load_test
