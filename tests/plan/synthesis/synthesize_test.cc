// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/synthesize.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/synthesis/order_bound.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/lint/lint.h"
#include "schedules/validate.h"
#include "tests/plan/synthesis/order_instances.h"

namespace weir::plan::synthesize_test {

using ::testing::HasSubstr;
using ::testing::Not;

Synthesis Found(const OrderProblem& problem,
                const SynthesisOptions& options = {}) {
  const absl::StatusOr<Synthesis> found = Synthesize(problem, options);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *found : Synthesis{};
}

TEST(SynthesizeTest, IsNeverWorseThanTheBestNamedOrder) {
  std::mt19937 random(41);
  int num_better = 0, num_named = 0;
  for (int round = 0; round < 300; ++round) {
    const int p = 2 + static_cast<int>(random() % 3);
    const int v = 1 + static_cast<int>(random() % 2);
    const int m = 1 + static_cast<int>(random() % 7);
    OrderProblem problem = RandomOrderProblem(p, m, v, random);
    problem.objective =
        round % 3 == 2 ? OrderObjective::kSpan : OrderObjective::kMakespan;
    // With two chunks per rank, more than one microbatch of memory may be
    // needed.
    const auto found = Synthesize(
        problem, {.method = SynthesisMethod::kLocal, .num_moves = 1500});
    if (!found.ok()) {
      EXPECT_THAT(std::string(found.status().message()),
                  HasSubstr("one microbatch at a time needs"));
      continue;
    }
    ASSERT_TRUE(schedules::ValidateSchedule(found->schedule).ok());
    for (double peak : found->peak_held) {
      ASSERT_LE(peak, problem.memory_limit * (1 + 1e-9));
    }
    ASSERT_NEAR(ObjectiveOf(problem, found->schedule), found->value, 1e-9);
    ASSERT_LE(found->bound, found->value);
    for (const NamedOrder& named : found->named) {
      if (!named.fits) continue;
      ASSERT_LE(found->value, named.value + 1e-9) << named.name;
      ASSERT_LE(found->bound, named.value + 1e-9) << named.name;
    }
    if (found->best_named() != nullptr) {
      ++num_named;
      num_better += found->value < found->best_named()->value - 1e-9;
    }
  }
  EXPECT_GE(num_named, 150);
  EXPECT_GE(num_better, 50) << num_better << " of " << num_named;
}

TEST(SynthesizeTest, WhatItWritesIsReadAgainAndHasNoErrors) {
  std::mt19937 random(43);
  for (int round = 0; round < 20; ++round) {
    const OrderProblem problem =
        RandomOrderProblem(2 + round % 3, 5, 1 + round % 2, random);
    const auto found = Synthesize(
        problem, {.method = SynthesisMethod::kLocal, .num_moves = 1500});
    if (!found.ok()) continue;
    const auto rows = schedules::ParseScheduleRows(
        "found.csv", schedules::PrintCsv(found->schedule));
    ASSERT_TRUE(rows.ok()) << rows.status();
    const auto report = schedules::LintRows(*rows, {.pytorch = true});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->num_errors(), 0);
  }
}

TEST(SynthesizeTest, IsTheOptimumAndSaysSo) {
  if (!HasCbc()) GTEST_SKIP() << "cbc is not here (coinor-cbc)";
  std::mt19937 random(47);
  for (int round = 0; round < 12; ++round) {
    const OrderProblem problem = RandomOrderProblem(2, 3, 1, random);
    const Synthesis found = Found(problem, {.num_moves = 3000});
    EXPECT_TRUE(found.is_proven) << found.mip;
    EXPECT_NEAR(found.value,
                LeastOfAllOrders(problem, PlacementsOf(problem)[0],
                                 Interleavings::kInOrder),
                1e-6);
  }
}

TEST(SynthesizeTest, AloneTheProgramIsAsGood) {
  if (!HasCbc()) GTEST_SKIP() << "cbc is not here (coinor-cbc)";
  std::mt19937 random(53);
  for (int round = 0; round < 6; ++round) {
    const OrderProblem problem = RandomOrderProblem(2, 3, 1, random);
    const Synthesis found = Found(problem, {.method = SynthesisMethod::kMip});
    EXPECT_TRUE(found.is_proven) << found.mip;
    EXPECT_NEAR(found.value,
                LeastOfAllOrders(problem, PlacementsOf(problem)[0],
                                 Interleavings::kInOrder),
                1e-6);
  }
}

TEST(SynthesizeTest, LocallyTheSameBytesEveryTime) {
  std::mt19937 random(59);
  const OrderProblem problem = RandomOrderProblem(4, 7, 1, random);
  const auto csv = [&] {
    return schedules::PrintCsv(
        Found(problem, {.method = SynthesisMethod::kLocal, .num_moves = 5000})
            .schedule);
  };
  EXPECT_EQ(csv(), csv());
}

// With a transfer as long as a forward, no named system is optimal, but the
// found order is.
TEST(SynthesizeTest, BeatsEverySystemWhereAHopIsLong) {
  OrderProblem problem = {.num_ranks = 4, .num_microbatches = 12};
  problem.costs.stages = {{.backward_input = 1.1, .backward_weight = 0.8}};
  problem.costs.hop = 1;
  problem.memory_limit = 6;
  const Synthesis found = Found(problem, {.method = SynthesisMethod::kLocal});
  ASSERT_NE(found.best_named(), nullptr);
  EXPECT_NEAR(found.best_named()->value, 45.5, 1e-9);
  EXPECT_NEAR(found.value, 44.9, 1e-9);
  EXPECT_TRUE(found.is_proven);
}

// CBC solves only the placements whose bound permits a better order.
TEST(SynthesizeTest, LeavesOutPlacementsThatTheirBoundRulesOut) {
  if (!HasCbc()) GTEST_SKIP() << "cbc is not here (coinor-cbc)";
  std::mt19937 random(71);
  int num_left_out = 0;
  for (int round = 0; round < 60 && num_left_out < 3; ++round) {
    const OrderProblem problem = RandomOrderProblem(2, 2, 2, random);
    SynthesisOptions options = {.method = SynthesisMethod::kLocal,
                                .num_moves = 1500};
    const auto local = Synthesize(problem, options);
    if (!local.ok() || local->is_proven) continue;
    int num_open = 0;
    for (const std::vector<int>& route : PlacementsOf(problem)) {
      const double bound = LowerBoundOf(PassTable(problem, route)).value;
      num_open += bound < local->value * (1 - 1e-9);
    }
    if (num_open != 1) continue;
    options.method = SynthesisMethod::kAuto;
    const Synthesis found = Found(problem, options);
    EXPECT_TRUE(found.is_proven) << found.mip;
    EXPECT_THAT(found.mip, HasSubstr(" binary variables: "));
    EXPECT_THAT(found.mip, Not(HasSubstr("; "))) << round;
    ++num_left_out;
  }
  EXPECT_EQ(num_left_out, 3);
}

TEST(SynthesizeTest, WithoutCbcItSearchesAndSaysWhatIsMissing) {
  std::mt19937 random(61);
  OrderProblem problem = RandomOrderProblem(3, 4, 1, random);
  problem.memory_limit = HeldByMicrobatch(problem) * 2;
  const Synthesis found =
      Found(problem, {.num_moves = 100, .solver = "no-such-cbc"});
  if (!found.is_proven) {
    EXPECT_THAT(found.mip, HasSubstr("coinor-cbc"));
  }
  const auto refused = Synthesize(
      problem, {.method = SynthesisMethod::kMip, .solver = "no-such-cbc"});
  if (!refused.ok()) {
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  }
}

TEST(SynthesizeTest, ALimitBelowOneMicrobatchSaysWhatWouldDo) {
  OrderProblem problem = {.num_ranks = 2, .num_microbatches = 2};
  problem.memory_limit = 0.5;
  const auto found = Synthesize(problem);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr("one microbatch at a time needs 1"));
}

// Offloading never makes the result worse, and respects the limit.
TEST(SynthesizeTest, OffloadsBeatWhatMemoryAllowsAlone) {
  if (!HasCbc()) GTEST_SKIP() << "cbc is not here (coinor-cbc)";
  OrderProblem problem = {.num_ranks = 2, .num_microbatches = 3};
  problem.memory_limit = 1;
  schedules::StagePassCosts stage;
  stage.weight_gradient_inputs = 0;
  problem.costs.stages = {stage};
  const SynthesisOptions options = {.seconds = 2};
  const Synthesis without = Found(problem, options);
  problem.may_offload = true;
  const Synthesis with = Found(problem, options);
  EXPECT_LE(with.value, without.value);
  for (double peak : with.peak_held) EXPECT_LE(peak, 1 + 1e-9);
  EXPECT_TRUE(schedules::ValidateSchedule(with.schedule).ok());
}

}  // namespace weir::plan::synthesize_test
