// SPDX-License-Identifier: Apache-2.0
#include "plan/search/cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace weir::plan::cuts_test {

using Blocks = std::vector<int>;

LayerPrice Price(double embedding, double head, int num_blocks) {
  LayerPrice price;
  price.has_ends = true;
  price.seconds.assign(num_blocks + 2, 1);
  price.seconds.front() = embedding;
  price.seconds.back() = head;
  price.state_bytes.assign(num_blocks + 2, 1);
  return price;
}

TEST(CutsTest, EvenSharesAreEqualOrNotThere) {
  EXPECT_EQ(CutBlocks(Price(0, 0, 8), 4, Cut::kEven), Blocks({2, 2, 2, 2}));
  EXPECT_EQ(CutBlocks(Price(0, 0, 8), 3, Cut::kEven), std::nullopt);
}

TEST(CutsTest, EndsCountAsABlockEach) {
  EXPECT_EQ(CutBlocks(Price(1, 1, 10), 4, Cut::kEndsLighter),
            Blocks({2, 3, 3, 2}));
  EXPECT_EQ(CutBlocks(Price(1, 1, 7), 4, Cut::kEndsLighter),
            Blocks({2, 2, 2, 1}));
}

TEST(CutsTest, AHeavyHeadHasAStageOfItsOwnAndTheOthersAreAlike) {
  EXPECT_EQ(CutBlocks(Price(0, 9, 9), 4, Cut::kBalanced), Blocks({3, 3, 3, 0}));
}

// A module of two blocks' time in the stage before that of the head.
TEST(CutsTest, ModulesMayHaveAStageBeforeTheHead) {
  LayerPrice price = Price(0, 5, 10);
  EXPECT_EQ(CutBlocks(price, 4, Cut::kMtpApart), std::nullopt);
  price.mtp_seconds = 2;
  EXPECT_EQ(CutBlocks(price, 4, Cut::kMtpApart), Blocks({4, 4, 2, 0}));
  price.mtp_seconds = 5;
  EXPECT_EQ(CutBlocks(price, 4, Cut::kMtpApart), Blocks({5, 5, 0, 0}));
  EXPECT_EQ(CutBlocks(price, 2, Cut::kMtpApart), std::nullopt);
}

TEST(CutsTest, SlowStagesGetFewerBlocks) {
  EXPECT_EQ(CutBlocks(Price(0, 0, 14), 4, Cut::kSpeeds, {1, 1, 0.5, 1}),
            Blocks({4, 4, 2, 4}));
  // Equal speeds give the balanced cut.
  EXPECT_EQ(CutBlocks(Price(0, 9, 9), 4, Cut::kSpeeds, {1, 1, 1, 1}),
            std::nullopt);
}

TEST(CutsTest, NoCutComesTwice) {
  EXPECT_EQ(CutBlocks(Price(0, 0, 8), 4, Cut::kBalanced), std::nullopt);
}

// Visits every cut of the layers, including embedding and head.
void AllCuts(int left, int stages, Blocks* cut,
             const std::function<void(const Blocks&)>& visit) {
  if (stages == 1) {
    cut->push_back(left);
    visit(*cut);
    cut->pop_back();
    return;
  }
  for (int n = 1; n <= left - (stages - 1); ++n) {
    cut->push_back(n);
    AllCuts(left - n, stages - 1, cut, visit);
    cut->pop_back();
  }
}

TEST(CutsTest, BalancedIsTheBestOfAllCuts) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int num_layers = 3 + static_cast<int>(random() % 7);
    const int num_stages = 2 + static_cast<int>(random() % (num_layers - 1));
    LayerPrice price;
    for (int i = 0; i < num_layers; ++i) {
      price.seconds.push_back(1 + static_cast<double>(random() % 9));
    }
    price.state_bytes = price.seconds;
    const auto score = [&](const Blocks& cut) {
      double largest = 0, squares = 0;
      int layer = 0;
      for (const int n : cut) {
        const double sum =
            std::accumulate(price.seconds.begin() + layer,
                            price.seconds.begin() + layer + n, 0.0);
        layer += n;
        largest = std::max(largest, sum);
        squares += sum * sum;
      }
      return std::make_pair(largest, squares);
    };
    std::pair<double, double> best = {1e9, 1e9};
    Blocks cut;
    AllCuts(num_layers, num_stages, &cut,
            [&](const Blocks& one) { best = std::min(best, score(one)); });
    // For a measured model, the even cut is the balanced one.
    const auto found = CutBlocks(price, num_stages, Cut::kEven);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(score(*found), best);
  }
}

// 10,000 layers can begin 64 stages in few ways without exceeding the largest
// stage.
TEST(CutsTest, BalancedCutsOfDeepModelsDifferByOneLayer) {
  LayerPrice price;
  price.seconds.assign(10'000, 0.1);
  price.state_bytes = price.seconds;
  const auto found = CutBlocks(price, 64, Cut::kEven);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(std::count(found->begin(), found->end(), 157), 16);
  EXPECT_EQ(std::count(found->begin(), found->end(), 156), 48);
}

TEST(CutsTest, SpeedsGiveTheBestOfAllCuts) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const int num_layers = 3 + static_cast<int>(random() % 7);
    const int num_stages = 2 + static_cast<int>(random() % (num_layers - 1));
    LayerPrice price;
    for (int i = 0; i < num_layers; ++i) {
      price.seconds.push_back(1 + static_cast<double>(random() % 9));
    }
    price.state_bytes.assign(num_layers, 1);
    std::vector<double> speeds;
    for (int i = 0; i < num_stages; ++i) {
      speeds.push_back(0.25 * (1 + static_cast<double>(random() % 4)));
    }
    const auto largest = [&](const Blocks& cut) {
      double most = 0;
      for (int stage = 0, first = 0; stage < num_stages; ++stage) {
        double seconds = 0;
        for (int i = 0; i < cut[stage]; ++i) seconds += price.seconds[first++];
        most = std::max(most, seconds / speeds[stage]);
      }
      return most;
    };
    double best = 1e300;
    Blocks buffer;
    AllCuts(num_layers, num_stages, &buffer,
            [&](const Blocks& cut) { best = std::min(best, largest(cut)); });
    const auto found = CutBlocks(price, num_stages, Cut::kSpeeds, speeds);
    // Missing if it equals another cut, which then is as good.
    if (!found.has_value()) continue;
    EXPECT_NEAR(largest(*found), best, 1e-9 * best);
    EXPECT_EQ(std::accumulate(found->begin(), found->end(), 0), num_layers);
  }
}

}  // namespace weir::plan::cuts_test
