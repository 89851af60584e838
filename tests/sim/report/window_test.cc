// SPDX-License-Identifier: Apache-2.0
// Finds the steady state of artificial batch times.
#include "sim/report/window.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "schedules/registry.h"

namespace weir::sim::window_test {

constexpr int kRanks = 2, kMicrobatches = 2;
constexpr int kDrain = 1;  // batches in which the last rank has no forwards

// Returns the window of a PipeDream run. Rank r ends batch b at ends(r, b), and
// its actions end at intervals of 10 ms before that.
Window WindowOf(int num_batches, const std::function<double(int, int)>& ends) {
  const auto schedule = schedules::GenerateSchedule(
      "pipedream", {kRanks, kMicrobatches, 1, num_batches});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  PipelineGraph graph;
  graph.pipeline = kRanks;
  const int num_actions = 2 * kMicrobatches * num_batches;
  Recording recording(static_cast<size_t>(kRanks) * num_actions);
  for (int rank = 0; rank < kRanks; ++rank) {
    graph.passes.first_action.push_back(rank * num_actions);
    int batch = num_batches - 1;
    int left = 0;  // actions until the batch's last backward
    for (int i = num_actions - 1; i >= 0; --i, ++left) {
      const schedules::Action& action = schedule->rank_actions[rank][i];
      if (action.op == schedules::Op::kBackward &&
          action.microbatch % kMicrobatches == kMicrobatches - 1) {
        batch = action.microbatch / kMicrobatches;
        left = 0;
      }
      recording.end_seconds()[graph.ActionTask(rank, i)] =
          ends(rank, batch) - 0.01 * left;
    }
  }
  return FindWindow(*schedule, graph, recording, 1e6);
}

TEST(WindowTest, OneBatchIsThePeriod) {
  const Window window =
      WindowOf(8, [](int rank, int batch) { return 10 + rank + 3.0 * batch; });
  EXPECT_TRUE(window.steady);
  EXPECT_EQ(window.num_batches, 1);
  EXPECT_DOUBLE_EQ(window.end_seconds, 10 + 3.0 * (8 - 1 - kDrain));
  EXPECT_DOUBLE_EQ(window.batch_seconds(), 3);
}

TEST(WindowTest, TwoBatchesThatTakeTurnsAreOnePeriod) {
  const Window window = WindowOf(12, [](int rank, int batch) {
    return rank + 4.0 * batch + (batch % 2 == 0 ? 0 : 1);
  });
  EXPECT_TRUE(window.steady);
  EXPECT_EQ(window.num_batches, 2);
  EXPECT_EQ(window.batch_seconds(), 4);
}

TEST(WindowTest, TheDrainIsLeftOut) {
  const auto ends = [](int last_regular) {
    return [=](int, int batch) {
      return 3.0 * batch + (batch > last_regular ? 1 : 0);
    };
  };
  EXPECT_TRUE(WindowOf(8, ends(8 - 1 - kDrain)).steady);
  EXPECT_FALSE(WindowOf(8, ends(8 - 2 - kDrain)).steady);
}

// A state covers 2p microbatches and one batch, which are 3 batches here.
TEST(WindowTest, WarmUpIsLeftOutButAWholeStateIsWanted) {
  const int last = 8 - 1 - kDrain;
  const auto regular_from = [](int first) {
    return [=](int, int batch) {
      return batch >= first ? 3.0 * batch : 3.0 * batch - 1 + 0.1 * batch;
    };
  };
  EXPECT_TRUE(WindowOf(8, regular_from(last - 3)).steady);
  EXPECT_FALSE(WindowOf(8, regular_from(last - 2)).steady);
}

TEST(WindowTest, EveryGpuMustKeepThePace) {
  const Window window = WindowOf(
      8, [](int rank, int batch) { return (3.0 + 0.01 * rank) * batch; });
  EXPECT_FALSE(window.steady);
}

TEST(WindowTest, RoundingIsNoDriftAndDriftIsNoRounding) {
  const auto shrinking = [](double part) {
    return [=](int, int batch) { return 3.0 * batch - part * batch * batch; };
  };
  EXPECT_TRUE(WindowOf(8, shrinking(1e-10)).steady);
  EXPECT_FALSE(WindowOf(8, shrinking(1e-5)).steady);
}

// An average of 3 seconds per batch, never twice the same.
double Wandering(int batch) {
  const double irrational = batch * batch * std::sqrt(2);
  return 3.0 * batch + 0.4 * (irrational - std::floor(irrational));
}

TEST(WindowTest, WithoutAPeriodTheSecondHalfCounts) {
  const Window window =
      WindowOf(20, [](int, int batch) { return Wandering(batch); });
  EXPECT_FALSE(window.steady);
  EXPECT_FALSE(window.stationary);  // too few to tell
  const int last = 20 - 1 - kDrain, half = last / 2;
  EXPECT_EQ(window.num_batches, last - half);
  EXPECT_DOUBLE_EQ(window.begin_seconds, Wandering(half));
  EXPECT_DOUBLE_EQ(window.end_seconds, Wandering(last));
  double variance = 0;
  for (int batch = half + 1; batch <= last; ++batch) {
    const double difference =
        Wandering(batch) - Wandering(batch - 1) - window.batch_seconds();
    variance += difference * difference / (last - half);
  }
  EXPECT_NEAR(window.spread_seconds * window.spread_seconds, variance, 1e-12);
}

TEST(WindowTest, AMeanThatStaysIsStationary) {
  const auto hardly = [](int, int batch) {
    return 3.0 * batch + 1e-2 * (Wandering(batch) - 3.0 * batch);
  };
  EXPECT_TRUE(WindowOf(256, hardly).stationary);
  EXPECT_FALSE(WindowOf(20, hardly).stationary);  // may be chance
  EXPECT_TRUE(WindowOf(256, [](int, int batch) {
                return Wandering(batch);
              }).stationary);
  EXPECT_FALSE(WindowOf(256, [](int, int batch) {
                 return Wandering(batch) - 1e-3 * batch * batch;
               }).stationary);
}

}  // namespace weir::sim::window_test
