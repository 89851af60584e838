// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/duration_curve.h"

#include <gtest/gtest.h>

namespace weir::plan::duration_curve_test {

TickScale Seconds() { return {.ticks_per_second = 1e6}; }

TEST(DurationCurveTest, IsTheHullOfWhatNoOtherClockBeats) {
  // 1,000 is beaten, 1,100 is above the line from 1,400 to 900, and below 900
  // longer passes cost more.
  const DurationCurve curve = CurveOf({{1400, 1, 100},
                                       {1100, 2, 85},
                                       {1000, 2.5, 90},
                                       {900, 3, 60},
                                       {600, 5, 70}},
                                      /*blocking_watts=*/0, Seconds());
  EXPECT_EQ(curve.ticks, (std::vector<Ticks>{1'000'000, 3'000'000}));
  EXPECT_EQ(curve.slopes, std::vector<Slope>{20'000'000});
  EXPECT_EQ(curve.choices.size(), 3u);
  EXPECT_EQ(curve.top.point.megahertz, 1400);
  EXPECT_NEAR(curve.JoulesOf(1'000'000), 100, 1e-9);
  EXPECT_NEAR(curve.JoulesOf(1'500'000), 90, 1e-9);
  EXPECT_NEAR(curve.JoulesOf(9'000'000), 60, 1e-9);
}

TEST(DurationCurveTest, AGpuThatWaitsSavesNothing) {
  // 10 W while it waits: the slowest clock adds 70 - 50 joules.
  const DurationCurve curve =
      CurveOf({{1400, 1, 100}, {900, 3, 60}, {600, 5, 70}}, 10, Seconds());
  EXPECT_EQ(curve.longest(), 5'000'000);
  EXPECT_NEAR(curve.joules.front(), 90, 1e-9);
  EXPECT_NEAR(curve.joules.back(), 20, 1e-9);
  EXPECT_EQ(curve.slopes, (std::vector<Slope>{30'000'000, 5'000'000}));
}

TEST(DurationCurveTest, RoundsDownToUnits) {
  TickScale scale = Seconds();
  scale.unit_seconds = 0.001;
  EXPECT_EQ(scale.TicksOf(0.0509), 50'000);
  EXPECT_EQ(scale.TicksOf(0.051), 51'000);
  EXPECT_EQ(scale.TicksOf(0.0001), 1000);  // one unit at least
  scale.unit_seconds = 0;
  EXPECT_EQ(scale.TicksOf(0.0509), 50'900);
}

}  // namespace weir::plan::duration_curve_test
