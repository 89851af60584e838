// SPDX-License-Identifier: Apache-2.0
// Checks shifts of clocks against orders typed by hand, and with random ones.
#include "results/import/clock_shifts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace weir::results::clock_shifts_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Adds messages in both directions that take `seconds`, if the clocks of `a`
// and `b` are ahead of the true time by `ahead`.
void AddMessages(int a, int b, double seconds, const std::vector<double>& ahead,
                 ClockLimits* limits) {
  limits->AddOrder(a, b, seconds + ahead[b] - ahead[a]);
  limits->AddOrder(b, a, seconds + ahead[a] - ahead[b]);
}

TEST(ClockShiftsTest, OrdersThatHoldMoveNothing) {
  ClockLimits limits(3);
  limits.AddOrder(0, 1, 0);
  limits.AddOrder(1, 0, 5);
  limits.AddOrder(2, 1, 0.1);
  const ClockShifts shifts = SolveClocks(limits);
  EXPECT_THAT(shifts.contradiction, IsEmpty());
  EXPECT_THAT(shifts.seconds, ElementsAre(0, 0, 0));
}

TEST(ClockShiftsTest, AClockThatDiffersMovesAlone) {
  const std::vector<double> ahead = {0, 0, 7, 0};
  ClockLimits limits(4);
  for (int i = 0; i < 3; ++i) AddMessages(i, i + 1, 0.5, ahead, &limits);
  const ClockShifts shifts = SolveClocks(limits);
  EXPECT_THAT(shifts.seconds, ElementsAre(0, 0, DoubleNear(-7, 1e-12), 0));
  // A transfer of 0.5 s lies between it and those that did not move.
  EXPECT_NEAR(shifts.uncertainty_seconds, 0.5, 1e-12);
}

// As on two nodes: 0 to 2 and 3 to 7.
TEST(ClockShiftsTest, ClocksThatAgreeMoveTogetherAndFewMove) {
  const std::vector<double> ahead = {-3, -3, -3, 0, 0, 0, 0, 0};
  ClockLimits limits(8);
  for (int i = 0; i < 7; ++i) AddMessages(i, i + 1, 1, ahead, &limits);
  EXPECT_THAT(SolveClocks(limits).seconds, ElementsAre(3, 3, 3, 0, 0, 0, 0, 0));
}

TEST(ClockShiftsTest, OneDirectionMovesAsFarAsItDemands) {
  ClockLimits limits(2);
  limits.AddOrder(0, 1, -2);
  const ClockShifts shifts = SolveClocks(limits);
  EXPECT_THAT(shifts.seconds, ElementsAre(0, 2));
  EXPECT_TRUE(std::isinf(shifts.uncertainty_seconds));
}

// Clock 2 is behind clocks 0 and 1, which differ from clocks 3 and 4 by less
// than their transfers hide.
TEST(ClockShiftsTest, ClocksThatMayStayDo) {
  const std::vector<double> ahead = {0, 0, -5, 0.2, 0.2};
  ClockLimits limits(5);
  AddMessages(0, 1, 0.3, ahead, &limits);
  AddMessages(1, 2, 0.1, ahead, &limits);
  AddMessages(2, 3, 0.2, ahead, &limits);
  AddMessages(3, 4, 0.3, ahead, &limits);
  AddMessages(4, 0, 0.3, ahead, &limits);
  const std::vector<double> x = SolveClocks(limits).seconds;
  EXPECT_THAT(x, ElementsAre(0, 0, DoubleNear(5, 0.3), 0, 0));
}

// Each set has clocks that stay.
TEST(ClockShiftsTest, SetsThatNothingLinksAreIndependent) {
  const std::vector<double> ahead = {0, 0, 9, 50, -70, 50};
  ClockLimits limits(7);
  for (const int first : {0, 3}) {
    AddMessages(first, first + 1, 1, ahead, &limits);
    AddMessages(first + 1, first + 2, 1, ahead, &limits);
  }
  EXPECT_THAT(SolveClocks(limits).seconds, ElementsAre(0, 0, -9, 0, 120, 0, 0));
  // Through clock 4, clock 5 is at most 2 s behind clock 3.
  limits.AddOrder(3, 5, -8);
  EXPECT_THAT(SolveClocks(limits).contradiction, UnorderedElementsAre(3, 4, 5));
}

// A grid of replicas and pipeline ranks, as large as those of real runs.
TEST(ClockShiftsTest, ManyClocks) {
  constexpr int kReplicas = 24, kRanks = 16;
  std::mt19937 random(5);
  std::uniform_real_distribution<double> transfer(0.1, 1);
  std::vector<double> ahead;
  for (int i = 0; i < kReplicas * kRanks; ++i) ahead.push_back(100 * i);
  std::shuffle(ahead.begin(), ahead.end(), random);
  ClockLimits limits(kReplicas * kRanks);
  for (int i = 0; i < kReplicas * kRanks; ++i) {
    if (i % kRanks + 1 < kRanks) {
      AddMessages(i, i + 1, transfer(random), ahead, &limits);
    }
    for (int j = i + kRanks; j < kReplicas * kRanks; j += kRanks) {
      AddMessages(i, j, transfer(random), ahead, &limits);
    }
  }
  const std::vector<double> x = SolveClocks(limits).seconds;
  for (size_t i = 1; i < ahead.size(); ++i) {
    EXPECT_NEAR(x[i] - x[0], ahead[0] - ahead[i], 1e-9);
  }
}

TEST(ClockShiftsTest, OrdersOfOtherClocksLimitAPair) {
  // Clock 1 is at least 2 s ahead of 0, and through clock 2 at most 3 s.
  ClockLimits limits(3);
  limits.AddOrder(0, 1, -2);
  limits.AddOrder(1, 2, 1);
  limits.AddOrder(2, 0, 2);
  const ClockShifts shifts = SolveClocks(limits);
  ASSERT_THAT(shifts.contradiction, IsEmpty());
  const std::vector<double>& x = shifts.seconds;
  EXPECT_GE(x[1] - x[0], 2 - 1e-12);
  EXPECT_LE(x[1] - x[0], 3 + 1e-12);
}

TEST(ClockShiftsTest, ContradictionsNameTheirClocks) {
  ClockLimits limits(5);
  limits.AddOrder(0, 1, 1);
  limits.AddOrder(1, 3, -1);
  limits.AddOrder(3, 4, 2);
  limits.AddOrder(4, 1, -4);
  const ClockShifts shifts = SolveClocks(limits);
  EXPECT_THAT(shifts.contradiction, UnorderedElementsAre(1, 3, 4));
  EXPECT_NEAR(shifts.contradiction_seconds, 1, 1e-12);  // -1 + 2 - 4 of three
  EXPECT_THAT(SolveClocks(limits.Relaxed(0.999)).contradiction,
              testing::Not(IsEmpty()));
  EXPECT_THAT(SolveClocks(limits.Relaxed(1.001)).contradiction, IsEmpty());
}

// Rings, chains and grids with transfers of different lengths, equal in both
// directions: offsets beyond all transfers are found exactly.
TEST(ClockShiftsTest, SymmetricTransfersGiveTheTrueOffsets) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> transfer(0.1, 1), jitter(-2, 2);
  for (int trial = 0; trial < 50; ++trial) {
    const int n = 2 + trial % 9;
    std::vector<double> ahead;
    for (int i = 0; i < n; ++i) ahead.push_back(100 * i + jitter(random));
    std::shuffle(ahead.begin(), ahead.end(), random);
    ClockLimits limits(n);
    for (int i = 0; i < n; ++i) {
      for (const int step : {1, 3}) {
        if (step == 1 || i + step < n) {
          AddMessages(i, (i + step) % n, transfer(random), ahead, &limits);
        }
      }
    }
    const ClockShifts shifts = SolveClocks(limits);
    ASSERT_THAT(shifts.contradiction, IsEmpty());
    for (int i = 1; i < n; ++i) {
      EXPECT_NEAR(shifts.seconds[i] - shifts.seconds[0], ahead[0] - ahead[i],
                  1e-9);
    }
  }
}

// Whatever is known of the clocks, all orders hold afterwards. If one clock is
// not moved, the true offsets are within the uncertainty.
TEST(ClockShiftsTest, AllOrdersHold) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> slack(0, 4), offset(-20, 20);
  int num_checked = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 2 + trial % 7;
    std::vector<double> ahead;
    for (int i = 0; i < n; ++i) ahead.push_back(offset(random));
    ClockLimits limits(n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        if (i == j || random() % 4 == 0) continue;
        limits.AddOrder(i, j, slack(random) + ahead[j] - ahead[i]);
      }
    }
    const ClockShifts shifts = SolveClocks(limits);
    ASSERT_THAT(shifts.contradiction, IsEmpty());
    const std::vector<double>& x = shifts.seconds;
    const auto unmoved = std::find(x.begin(), x.end(), 0) - x.begin();
    const bool is_only_one = std::count(x.begin(), x.end(), 0) == 1;
    ASSERT_LT(unmoved, n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        EXPECT_LE(x[i] - x[j], limits.slack_seconds()[i * n + j] + 1e-9);
      }
      if (x[i] == 0 || !is_only_one) continue;
      num_checked += std::isfinite(shifts.uncertainty_seconds) ? 1 : 0;
      EXPECT_LE(std::abs(x[i] - (ahead[unmoved] - ahead[i])),
                shifts.uncertainty_seconds + 1e-9);
    }
  }
  EXPECT_GT(num_checked, 20);
}

}  // namespace
}  // namespace weir::results::clock_shifts_test
