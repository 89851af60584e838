// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/training.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "tests/calibrate/execute/tiny_execution.h"

namespace weir::calibrate::training_test {

ExecutionPlan Plan(bool llama, std::vector<int> first_layer) {
  ExecutionRequest request = TinyRequest(
      Generated("gpipe", {.num_ranks = static_cast<int>(first_layer.size()) - 1,
                          .num_microbatches = 2}),
      llama);
  request.model = llama ? SmallLlama(4) : TinyGpt(4);
  request.first_layer = std::move(first_layer);
  return PlanOf(request);
}

using Cuts = std::vector<std::vector<int>>;
const Cuts kCuts = {{0, 6},          {0, 2, 6},          {0, 1, 6},
                    {0, 5, 6},       {0, 1, 2, 6},       {0, 2, 3, 4, 6},
                    {0, 1, 2, 5, 6}, {0, 1, 2, 3, 4, 6}, {0, 1, 2, 3, 4, 5, 6}};

TEST(TrainingTest, InitialWeightsDoNotDependOnTheCut) {
  for (const bool llama : {false, true}) {
    const std::vector<double> whole = InitialWeights(Plan(llama, {0, 6}), 0, 6);
    for (const std::vector<int>& first : kCuts) {
      const ExecutionPlan plan = Plan(llama, first);
      const auto cut = CutWeights(plan, whole);
      ASSERT_EQ(cut.size(), first.size() - 1);
      for (size_t stage = 0; stage < cut.size(); ++stage) {
        EXPECT_EQ(cut[stage],
                  InitialWeights(plan, first[stage], first[stage + 1]))
            << llama << " stage " << stage << " of " << cut.size();
        EXPECT_EQ(std::ssize(cut[stage]),
                  plan.programs[stage]->buffers[0].num_elements);
      }
    }
  }
}

// Every element of the whole model is in one stage; the tied table is in two.
TEST(TrainingTest, CutWeightsLoseNothing) {
  for (const bool llama : {false, true}) {
    for (const std::vector<int>& first : kCuts) {
      const ExecutionPlan plan = Plan(llama, first);
      std::vector<double> whole(
          Plan(llama, {0, 6}).programs[0]->buffers[0].num_elements);
      std::iota(whole.begin(), whole.end(), 1);
      std::multiset<double> found;
      for (const auto& stage : CutWeights(plan, whole)) {
        found.insert(stage.begin(), stage.end());
      }
      for (const double value : whole) EXPECT_GE(found.count(value), 1U);
      const size_t tied = llama || first.size() == 2 ? 0 : 13 * 8;
      EXPECT_EQ(found.size(), whole.size() + tied);
    }
  }
}

TEST(TrainingTest, GainsAreOneBiasesZeroTheRestSmall) {
  const ExecutionPlan plan = Plan(false, {0, 6});
  const std::vector<double> weights = InitialWeights(plan, 0, 6);
  double sum = 0, square = 0;
  int ones = 0, small = 0;
  for (const double weight : weights) {
    if (weight == 1) {
      ++ones;
    } else if (weight != 0) {
      EXPECT_LE(std::abs(weight), 3.5 * 0.02);
      sum += weight;
      square += weight * weight;
      ++small;
    }
  }
  EXPECT_EQ(ones, (4 * 2 + 1) * 8);
  // table, positions; qkv, projection, two of the feed-forward
  EXPECT_EQ(small, 13 * 8 + 6 * 8 + 4 * (3 * 64 + 64 + 2 * 96));
  EXPECT_NEAR(sum / small, 0, 4 * 0.02 / std::sqrt(1. * small));
  // 1984 samples: 0.02 within four standard errors
  EXPECT_NEAR(std::sqrt(square / small), 0.02,
              4 * 0.02 / std::sqrt(2. * small));
}

TEST(TrainingTest, SeedsAndLayersDiffer) {
  ExecutionPlan plan = Plan(false, {0, 6});
  const std::vector<double> second = InitialWeights(plan, 2, 3);
  EXPECT_NE(second, InitialWeights(plan, 1, 2));
  EXPECT_NE(DropoutSeed(plan, 0), DropoutSeed(plan, 1));
  const MicrobatchData data = DataOf(plan, 0);
  EXPECT_NE(data.tokens, DataOf(plan, 1).tokens);
  const uint64_t dropout = DropoutSeed(plan, 0);
  plan.seed = 2;
  EXPECT_NE(second, InitialWeights(plan, 2, 3));
  EXPECT_NE(data.tokens, DataOf(plan, 0).tokens);
  EXPECT_NE(dropout, DropoutSeed(plan, 0));
}

// The successors of a word are drawn four times, so some may be equal; they
// follow with probability 1/2, 1/4, 1/8 and 1/8. Returns true if the counts are
// within five standard deviations of this for one way of being equal.
bool AreOfFourDraws(const std::map<double, int>& counts) {
  constexpr double kProbability[] = {0.5, 0.25, 0.125, 0.125};
  std::vector<double> found;
  double n = 0;
  for (const auto& [next, count] : counts) {
    found.push_back(count);
    n += count;
  }
  std::sort(found.begin(), found.end());
  for (int ways = 0; ways < 4 * 4 * 4 * 4; ++ways) {
    double word[4] = {};
    for (int draw = 0; draw < 4; ++draw) {
      word[ways >> 2 * draw & 3] += kProbability[draw];
    }
    std::vector<double> expected;
    for (const double p : word) {
      if (p > 0) expected.push_back(p);
    }
    std::sort(expected.begin(), expected.end());
    bool is_near = expected.size() == found.size();
    for (size_t i = 0; is_near && i < found.size(); ++i) {
      const double p = expected[i];
      is_near = std::abs(found[i] - n * p) <= 5 * std::sqrt(n * p * (1 - p));
    }
    if (is_near) return true;
  }
  return false;
}

// Targets are the next tokens of a text with a distribution that a model can
// learn.
TEST(TrainingTest, TextIsDrawnFromABigramModel) {
  ExecutionPlan plan = Plan(true, {0, 6});
  std::map<double, std::map<double, int>> followers;
  int num_words = 0;
  for (int microbatch = 0; microbatch < 400; ++microbatch) {
    const MicrobatchData data = DataOf(plan, microbatch);
    ASSERT_EQ(data.tokens.size(), 8U);
    for (int i = 0; i < 8; ++i) {
      if (i % 4 != 3) {
        EXPECT_EQ(data.tokens[i + 1], data.targets[i]);
      }
      EXPECT_GE(data.tokens[i], 0);
      EXPECT_LT(data.tokens[i], 11);
      ++followers[data.tokens[i]][data.targets[i]];
      ++num_words;
    }
  }
  EXPECT_EQ(num_words, 400 * 8);
  int num_with_four = 0;
  for (const auto& [word, counts] : followers) {
    EXPECT_TRUE(AreOfFourDraws(counts)) << word;
    num_with_four += counts.size() == 4;
  }
  EXPECT_GT(num_with_four, 0);
}

}  // namespace weir::calibrate::training_test
