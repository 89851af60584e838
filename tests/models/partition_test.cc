// SPDX-License-Identifier: Apache-2.0
#include "models/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "models/model.h"

namespace weir::models::partition_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<LayerWork> Layers(int num_blocks) {
  std::vector<LayerWork> layers(num_blocks + 2);
  layers.front().role = LayerRole::kEmbedding;
  layers.back().role = LayerRole::kHead;
  return layers;
}

TEST(PartitionEvenlyTest, EndsJoinTheFirstAndTheLastStage) {
  EXPECT_THAT(PartitionEvenly(Layers(12), 4)->first,
              ElementsAre(0, 4, 7, 10, 14));
  EXPECT_THAT(PartitionEvenly(Layers(12), 1)->first, ElementsAre(0, 14));
  EXPECT_THAT(PartitionEvenly(Layers(2), 2)->first, ElementsAre(0, 2, 4));
}

TEST(PartitionEvenlyTest, MeasuredLayersAreBlocks) {
  std::vector<LayerWork> layers(6);
  for (LayerWork& layer : layers) layer.role = LayerRole::kMeasured;
  EXPECT_THAT(PartitionEvenly(layers, 3)->first, ElementsAre(0, 2, 4, 6));
}

TEST(PartitionEvenlyTest, RefusesWhatDoesNotDivide) {
  EXPECT_EQ(PartitionEvenly(Layers(12), 5).status().message(),
            "partition: num_stages is 5, expected a divisor of the 12 blocks");
  for (int num_stages : {-1, 0, 13}) {
    EXPECT_THAT(
        std::string(PartitionEvenly(Layers(12), num_stages).status().message()),
        HasSubstr("expected 1 to 12, the number of blocks"));
  }
  EXPECT_FALSE(PartitionEvenly({}, 1).ok());
}

TEST(PartitionAsGivenTest, CountsBlocks) {
  EXPECT_THAT(PartitionAsGiven(Layers(6), {1, 3, 2})->first,
              ElementsAre(0, 2, 5, 8));
}

TEST(PartitionAsGivenTest, OnlyTheEndsCanDoWithoutABlock) {
  EXPECT_THAT(PartitionAsGiven(Layers(4), {0, 4, 0})->first,
              ElementsAre(0, 1, 5, 6));
  EXPECT_THAT(
      std::string(
          PartitionAsGiven(Layers(4), {4, 0, -1, 2}).status().message()),
      AllOf(HasSubstr("blocks_per_stage[1] is 0, expected at least 1"),
            HasSubstr("blocks_per_stage[2] is -1"),
            HasSubstr("adds up to 5, expected the 4 blocks")));
  EXPECT_FALSE(PartitionAsGiven(Layers(4), {}).ok());
}

double Bottleneck(const std::vector<double>& seconds,
                  const std::vector<int>& first) {
  double most = 0;
  for (size_t s = 0; s + 1 < first.size(); ++s) {
    most = std::max(most, std::accumulate(seconds.begin() + first[s],
                                          seconds.begin() + first[s + 1], 0.0));
  }
  return most;
}

// Tries every cut in lexicographic order, so that the first best is the
// earliest.
std::vector<int> BestOfAll(const std::vector<double>& seconds, int num_stages) {
  const int n = static_cast<int>(seconds.size());
  std::vector<int> best;
  std::vector<bool> cut(n - 1, false);
  std::fill(cut.begin(), cut.begin() + num_stages - 1, true);
  do {
    std::vector<int> first = {0};
    for (int i = 1; i < n; ++i) {
      if (cut[i - 1]) first.push_back(i);
    }
    first.push_back(n);
    if (best.empty() ||
        Bottleneck(seconds, first) < Bottleneck(seconds, best) * (1 - 1e-9)) {
      best = first;
    }
  } while (std::prev_permutation(cut.begin(), cut.end()));
  return best;
}

TEST(PartitionBalancedTest, EqualsBruteForceOnRandomLayers) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 600; ++trial) {
    const int n = 1 + random() % 10;
    const int p = 1 + random() % n;
    std::vector<double> seconds(n);
    for (double& value : seconds) {
      // A few distinct values, including 0, produce ties.
      value = trial % 2 == 0 ? random() % 4 * 0.1 : random() % 100000 * 1e-5;
    }
    const auto partition = PartitionBalanced(seconds, p);
    ASSERT_TRUE(partition.ok()) << partition.status();
    EXPECT_EQ(partition->first, BestOfAll(seconds, p)) << trial;
  }
}

TEST(PartitionBalancedTest, EveryStageGetsALayer) {
  EXPECT_THAT(PartitionBalanced({0, 0, 0, 9}, 4)->first,
              ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(PartitionBalanced({5, 1, 1, 1}, 3)->first,
              ElementsAre(0, 1, 2, 4));
}

TEST(PartitionBalancedTest, LongChainsAreQuick) {
  std::vector<double> seconds(10000);
  for (size_t i = 0; i < seconds.size(); ++i) seconds[i] = 1 + i % 7;
  const auto partition = PartitionBalanced(seconds, 100);
  ASSERT_TRUE(partition.ok());
  const double mean =
      std::accumulate(seconds.begin(), seconds.end(), 0.0) / 100;
  EXPECT_LE(Bottleneck(seconds, partition->first), mean + 7);
}

TEST(PartitionBalancedTest, RefusesWhatCannotBe) {
  EXPECT_FALSE(PartitionBalanced({1, 2}, 3).ok());
  EXPECT_FALSE(PartitionBalanced({1, 2}, 0).ok());
  EXPECT_FALSE(PartitionBalanced({}, 1).ok());
  EXPECT_THAT(
      std::string(PartitionBalanced({-1, NAN, INFINITY}, 2).status().message()),
      AllOf(HasSubstr("layer_seconds[0]"), HasSubstr("[1]"), HasSubstr("[2]")));
}

TEST(PartitionTest, RealModelsCut) {
  const Model model = *LoadModel("gpt-2.2b");
  WorkSpec spec;
  spec.sequence_length = 512;
  const std::vector<LayerWork> layers = LayersOf(model, spec);
  EXPECT_THAT(PartitionEvenly(layers, 8)->first,
              ElementsAre(0, 5, 9, 13, 17, 21, 25, 29, 34));
}

}  // namespace weir::models::partition_test
