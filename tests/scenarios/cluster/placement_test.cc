// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace weir::scenarios::placement_test {

using ::testing::HasSubstr;

std::string Message(const absl::StatusOr<Placement>& placement) {
  EXPECT_EQ(placement.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(placement.status().message());
}

TEST(PlacementTest, DataBeforePipelineKeepsReplicasAdjacent) {
  const auto placement = PlaceInOrder("s", "tp-dp-pp", 2, 3, 4, 24);
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->gpu(0, 0, 0), 0);
  EXPECT_EQ(placement->gpu(0, 0, 1), 1);
  EXPECT_EQ(placement->gpu(1, 0, 0), 2);
  EXPECT_EQ(placement->gpu(0, 1, 0), 6);
  EXPECT_EQ(placement->gpu(2, 3, 1), 23);
}

TEST(PlacementTest, PipelineBeforeDataKeepsPipelinesAdjacent) {
  const auto placement = PlaceInOrder("s", "tp-pp-dp", 2, 3, 4, 24);
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->gpu(0, 0, 1), 1);
  EXPECT_EQ(placement->gpu(0, 1, 0), 2);
  EXPECT_EQ(placement->gpu(1, 0, 0), 8);
  EXPECT_EQ(placement->gpu(2, 3, 1), 23);
}

TEST(PlacementTest, BothOrdersUseEveryGpuOnce) {
  for (const char* order : {"tp-dp-pp", "tp-pp-dp"}) {
    auto placement = PlaceInOrder("s", order, 3, 5, 7, 200);
    ASSERT_TRUE(placement.ok()) << placement.status();
    std::sort(placement->gpus.begin(), placement->gpus.end());
    ASSERT_EQ(placement->gpus.size(), 105u);
    for (int i = 0; i < 105; ++i) EXPECT_EQ(placement->gpus[i], i);
  }
}

TEST(PlacementTest, UnknownOrderIsNamed) {
  EXPECT_EQ(Message(PlaceInOrder("s: parallelism", "pp-dp", 1, 1, 1, 1)),
            "s: parallelism: order is \"pp-dp\", expected \"tp-dp-pp\" or "
            "\"tp-pp-dp\"");
}

TEST(PlacementTest, TooFewGpusAreCounted) {
  EXPECT_EQ(Message(PlaceInOrder("s", "tp-dp-pp", 2, 4, 8, 32)),
            "s: tensor 2 x data 4 x pipeline 8 needs 64 GPUs, but the cluster "
            "has 32 (--nodes sets the number of nodes)");
}

TEST(PlacementTest, DegreesThatOverflowAreRefused) {
  const int large = 1 << 20;
  EXPECT_THAT(
      Message(PlaceInOrder("s", "tp-dp-pp", large, large, large, large)),
      HasSubstr("needs 1152921504606846976 GPUs"));
  EXPECT_THAT(Message(PlaceInOrder("s", "tp-dp-pp", 0, -1, 2147483647, 8)),
              HasSubstr("tensor is 0, expected 1 to 8\n"
                        "s: data is -1, expected 1 to 8\n"
                        "s: pipeline is 2147483647, expected 1 to 8"));
}

TEST(PlacementTest, GivenGpusAreTakenAsTheyAre) {
  const auto placement = PlaceAsGiven("s", {7, 3, 5, 1}, 1, 2, 2, 8);
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->gpu(0, 1, 0), 3);
  EXPECT_EQ(placement->gpu(1, 0, 0), 5);
}

TEST(PlacementTest, BadGivenGpusAreNamedAtOnce) {
  EXPECT_EQ(Message(PlaceAsGiven("s", {0, 8, 0, -1, 2}, 1, 2, 2, 8)),
            "s: gpus lists 5 GPUs, expected tensor 1 x data 2 x pipeline 2 = "
            "4\n"
            "s: gpus[1] is 8, expected 0 to 7\n"
            "s: gpus[2] is GPU 0 again, expected each GPU once\n"
            "s: gpus[3] is -1, expected 0 to 7");
}

}  // namespace weir::scenarios::placement_test
