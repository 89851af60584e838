// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/rotation.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <set>

namespace weir::calibrate::rotation_test {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kL2 = 60 * kMiB, kFree = 140LL << 30;

int Sets(int64_t bytes, int64_t free = kFree, bool is_pass = false) {
  const auto sets = NumSets(bytes, bytes, kL2, free, is_pass);
  EXPECT_TRUE(sets.ok()) << sets.status();
  return sets.value_or(-1);
}

TEST(RotationTest, SetsExceedThreeTimesTheCache) {
  for (const int64_t bytes : {kMiB, 7 * kMiB, 59 * kMiB, 60 * kMiB}) {
    EXPECT_GT(Sets(bytes) * bytes, 3 * kL2) << bytes;
    EXPECT_LE((Sets(bytes) - 1) * bytes, 3 * kL2) << bytes;
  }
}

TEST(RotationTest, LargeOperationsRotateOverThreeSetsAndPassesNeedNot) {
  EXPECT_EQ(Sets(1000 * kMiB), 3);
  EXPECT_EQ(Sets(1000 * kMiB, kFree, true), 1);
  EXPECT_EQ(Sets(100 * kMiB, kFree, true), 2);
}

TEST(RotationTest, TinyOperationsStopAtAThousandSets) {
  EXPECT_EQ(Sets(16), 1024);
  EXPECT_EQ(Sets(0), 1024);
}

TEST(RotationTest, FreeMemoryCapsThem) {
  EXPECT_EQ(Sets(10LL << 30, 23LL << 30), 2);
  const auto none = NumSets(1, 10LL << 30, kL2, 8LL << 30, false);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(none.status().message()),
      testing::HasSubstr("10.00 GiB, expected at most 90 % of the 8.00 GiB"));
}

TEST(RotationTest, GraphsMakeAboutTheWantedLaunches) {
  for (const int launches : {1, 2, 3, 5, 30, 64, 100, 5000}) {
    for (const int sets : {1, 3, 7, 200}) {
      for (const int ops : {1, 300, 5000}) {
        const GraphPlan plan = PlanGraphs(launches, sets, ops);
        EXPECT_GE(plan.num_launches(), 1);
        EXPECT_LE(2 * std::abs(plan.num_launches() - launches),
                  plan.launches_per_graph);
        EXPECT_LE(plan.launches_per_graph, std::max(1, kMaxGraphOps / ops));
        EXPECT_FALSE(plan.first_sets.empty());
      }
    }
  }
}

// 0.1 s of a GEMM on three sets of operands: one graph of whole rounds.
TEST(RotationTest, OneLaunchMoreThanWholeRoundsIsNoSecondGraph) {
  const GraphPlan plan = PlanGraphs(64, 3, 1);
  EXPECT_EQ(plan.launches_per_graph, 63);
  EXPECT_EQ(plan.num_launches(), 63);
}

// Returns the sets in the order in which replays use them.
std::vector<int> SetsUsed(const GraphPlan& plan, int num_sets, int replays) {
  std::vector<int> used;
  for (int replay = 0; replay < replays; ++replay) {
    const int first = plan.first_sets[replay % plan.first_sets.size()];
    for (int i = 0; i < plan.launches_per_graph; ++i) {
      used.push_back((first + i) % num_sets);
    }
  }
  return used;
}

TEST(RotationTest, NoSetComesBackBeforeAllOthersHadTheirTurn) {
  for (const int launches : {2, 3, 8, 10, 100}) {
    for (const int sets : {1, 3, 7, 20}) {
      const GraphPlan plan = PlanGraphs(launches, sets, 1);
      const std::vector<int> used =
          SetsUsed(plan, sets, static_cast<int>(plan.first_sets.size()));
      const size_t round = std::min<size_t>(sets, used.size());
      const std::set<int> first_round(used.begin(), used.begin() + round);
      EXPECT_EQ(first_round.size(), round) << launches << " over " << sets;
    }
  }
}

}  // namespace weir::calibrate::rotation_test
