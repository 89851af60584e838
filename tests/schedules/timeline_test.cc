// SPDX-License-Identifier: Apache-2.0
#include "schedules/timeline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::timeline_test {

using testing::HasSubstr;

TEST(TimelineTest, OneFOneBIsThePictureInTheHeader) {
  EXPECT_EQ(DrawTimeline(Generated("1f1b", {4, 6})),
            "rank 0 |0123......aa4bb5cc.dd.ee.ff|\n"
            "rank 1 |.012....aa3bb4cc5dd.ee.ff..|\n"
            "rank 2 |..01..aa2bb3cc4dd5ee.ff....|\n"
            "rank 3 |...0aa1bb2cc3dd4ee5ff......|\n"
            "digit: forward of that microbatch, letter: its backward, '.': "
            "idle\n");
}

TEST(TimelineTest, GPipeWaitsOnceInTheMiddle) {
  EXPECT_EQ(DrawTimeline(Generated("gpipe", {3, 4})),
            "rank 0 |0123......ddccbbaa|\n"
            "rank 1 |.0123...ddccbbaa..|\n"
            "rank 2 |..0123ddccbbaa....|\n"
            "digit: forward of that microbatch, letter: its backward, '.': "
            "idle\n");
}

TEST(TimelineTest, EveryStageOfAnInterleavedRankHasARow) {
  EXPECT_EQ(DrawTimeline(Generated("interleaved", {2, 2, 2})),
            "rank 0 stage 0 |01  ...    aabb|\n"
            "rank 0 stage 2 |  01...aabb    |\n"
            "rank 1 stage 1 |.01      aabb..|\n"
            "rank 1 stage 3 |.  01aabb    ..|\n"
            "digit: forward of that microbatch, letter: its backward, '.': "
            "idle, ' ': the\n  rank runs another stage\n");
}

TEST(TimelineTest, AsynchronousBatchesFollowWithoutAGap) {
  EXPECT_EQ(DrawTimeline(Generated("2bw", {2, 3, 1, 2})),
            "rank 0 |01..aa2bb3cc4dd5ee.ff|\n"
            "rank 1 |.0aa1bb2cc3dd4ee5ff..|\n"
            "digit: forward of that microbatch, letter: its backward, '.': "
            "idle\n");
}

TEST(TimelineTest, WeightGradientsAreUpperCase) {
  EXPECT_EQ(DrawTimeline(FromText("0F0,0F1,0I0,0W0,0I1,0W1\n"
                                  "1F0,1I0,1F1,1I1,1W0,1W1\n")),
            "rank 0 |01.aAbB|\n"
            "rank 1 |.0a1bAB|\n"
            "digit: forward of that microbatch, letter: its backward (upper "
            "case: weight\n  gradient), '.': idle\n");
}

TEST(TimelineTest, MicrobatchesPastTenCycle) {
  EXPECT_EQ(DrawTimeline(Generated("1f1b", {1, 12})),
            "rank 0 |0aa1bb2cc3dd4ee5ff6gg7hh8ii9jj0aa1bb|\n"
            "digit: forward of that microbatch modulo 10, letter: its "
            "backward, '.': idle\n");
}

TEST(TimelineTest, WidePicturesAreCutAndSaySo) {
  EXPECT_EQ(DrawTimeline(Generated("1f1b", {2, 9}), {.max_columns = 20}),
            "rank 0 |01..aa2bb3c>\n"
            "rank 1 |.0aa1bb2cc3>\n"
            "digit: forward of that microbatch, letter: its backward, '.': "
            "idle\n"
            "truncated to the first 11 of 30 units of time\n");
}

TEST(TimelineTest, NoPictureIsTooNarrow) {
  for (int max_columns : {-5, 0, 1, 9}) {
    EXPECT_THAT(
        DrawTimeline(Generated("1f1b", {2, 2}), {.max_columns = max_columns}),
        HasSubstr("rank 1 |.>\n"));
  }
}

TEST(TimelineTest, LabelsOfManyRanksAlign) {
  const std::string picture = DrawTimeline(Generated("1f1b", {12, 1}));
  EXPECT_THAT(picture, HasSubstr("rank  0 |0"));
  EXPECT_THAT(picture, HasSubstr("rank 11 |...........0aa"));
}

}  // namespace weir::schedules::timeline_test
