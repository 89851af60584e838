// SPDX-License-Identifier: Apache-2.0
#include "schedules/stages_by_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/size_limits.h"
#include "schedules/registry.h"

namespace weir::schedules::stages_by_rank_test {

using ::testing::HasSubstr;

Schedule Generated(const char* name, int num_ranks, int num_chunks) {
  ScheduleSpec spec;
  spec.num_ranks = num_ranks;
  spec.num_microbatches = 8;
  spec.num_chunks = num_chunks;
  return GenerateSchedule(name, spec).value();
}

TEST(StagesByRankTest, AreThoseOfEachRank) {
  for (const Schedule& schedule :
       {Generated("gpipe", 4, 1), Generated("interleaved-1f1b", 4, 3),
        Generated("chimera", 4, 1), Generated("zb-v", 4, 2),
        Generated("pipedream:replicas=3-1-2", 6, 1)}) {
    const auto stages = StagesByRank(schedule);
    ASSERT_EQ(std::ssize(stages), schedule.num_ranks) << schedule.name;
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      EXPECT_EQ(stages[rank], schedule.StagesOf(rank)) << schedule.name;
    }
  }
}

// Uses more routes than are searched linearly.
TEST(StagesByRankTest, RanksOfManyRoutesAreListedOnceInTheirOrder) {
  Schedule schedule;
  schedule.num_ranks = 40;
  schedule.num_stages = 1;
  std::vector<int> expected;
  for (int rank = 39; rank >= 0; --rank) {
    expected.push_back(rank);
    schedule.routes.push_back({rank});
    schedule.routes.push_back({rank});
  }
  EXPECT_EQ(schedule.RanksOf(0), expected);
}

TEST(ScheduleSizeTest, IsRefusedWithAnEstimateBeforeItIsMade) {
  ScheduleSpec spec;
  spec.num_ranks = 4;
  spec.num_microbatches = 1000;
  {
    const ScopedSizeLimits limits({1000, 1});
    EXPECT_THAT(GenerateSchedule("1f1b", spec).status().message(),
                HasSubstr("result in 8e+03 actions, which need about 500 KiB"));
  }
  EXPECT_TRUE(GenerateSchedule("1f1b", spec).ok());
}

}  // namespace weir::schedules::stages_by_rank_test
