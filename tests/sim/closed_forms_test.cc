// SPDX-License-Identifier: Apache-2.0
// Compares simulations with the papers' closed forms, to 1e-9.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/simulate.h"
#include "tests/sim/given_scenario.h"

namespace weir::sim::closed_forms_test {

constexpr double kForward = 1.25, kBackward = 2.5;

Result RunScenario(GivenScenario given) {
  if (given.forward_seconds.front() == 1) {
    given.forward_seconds = {kForward};
    given.backward_seconds = {kBackward};
  }
  const auto result = Simulate(Resolve(given));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

void ExpectEqual(double actual, double expected) {
  EXPECT_NEAR(actual, expected, 1e-9 * expected);
}

TEST(SimulatorClosedFormTest, GPipe) {
  for (int p = 2; p <= 16; ++p) {
    for (int m = 1; m <= 64; ++m) {
      const Result result = RunScenario({.schedule = "gpipe",
                                         .num_ranks = p,
                                         .num_microbatches = m,
                                         .hop_seconds = 0.3});
      const double time =
          (m + p - 1) * (kForward + kBackward) + 2 * (p - 1) * 0.3;
      ExpectEqual(result.makespan_seconds(), time);
      ExpectEqual(result.batch_seconds(), time);
      ExpectEqual(result.idle_ratio(), 1 - m * (kForward + kBackward) / time);
      EXPECT_EQ(result.ranks(0).peak_activation_microbatches(), m);
      EXPECT_EQ(result.weight_versions(), 1u);
      EXPECT_EQ(result.staleness_updates(), 0u);
    }
  }
}

TEST(SimulatorClosedFormTest, PipeDreamFlushWithAndWithoutLatency) {
  for (int p = 2; p <= 16; ++p) {
    for (int m = 1; m <= 64; ++m) {
      for (double c : {0.0, 0.4}) {
        const Result result = RunScenario({.schedule = "1f1b",
                                           .num_ranks = p,
                                           .num_microbatches = m,
                                           .hop_seconds = c});
        const int hops = p + m - 2 - (m - 1 + p - 1) / p;
        ExpectEqual(result.makespan_seconds(),
                    (m + p - 1) * (kForward + kBackward) + 2 * c * hops);
        for (int s = 0; s < p; ++s) {
          EXPECT_EQ(result.ranks(s).peak_activation_microbatches(),
                    std::min(p - s, m));
        }
      }
    }
  }
}

TEST(SimulatorClosedFormTest, Interleaved) {
  for (int p = 2; p <= 8; ++p) {
    for (int v = 2; v <= 4; ++v) {
      for (int m : {p, 2 * p, 5 * p}) {
        const Result result = RunScenario({.schedule = "interleaved-1f1b",
                                           .num_ranks = p,
                                           .num_microbatches = m,
                                           .num_chunks = v});
        // The times given are those of a chunk; a whole rank takes v times as
        // long.
        const double rank_seconds = v * (kForward + kBackward);
        ExpectEqual(result.makespan_seconds(),
                    m * rank_seconds + (p - 1) * rank_seconds / v);
        for (int s = 0; s < p; ++s) {
          const int chunks =
              m == p ? m * v
                     : std::min(2 * (p - s - 1) + (v - 1) * p + 1, m * v);
          ExpectEqual(result.ranks(s).peak_activation_microbatches(),
                      static_cast<double>(chunks) / v);
        }
      }
    }
  }
}

TEST(SimulatorClosedFormTest, PipeDream2BwHasNoBubbleAndTwoVersions) {
  for (int p = 2; p <= 8; ++p) {
    for (int m : {p, p + 1, 2 * p, 3 * p + 1}) {
      const Result result = RunScenario(
          {.schedule = "pipedream-2bw", .num_ranks = p, .num_microbatches = m});
      EXPECT_TRUE(result.steady_state());
      ExpectEqual(result.batch_seconds(), m * (kForward + kBackward));
      EXPECT_NEAR(result.idle_ratio(), 0, 1e-9);
      for (int s = 0; s < p; ++s) {
        EXPECT_EQ(result.ranks(s).weight_versions(), 2u);
        EXPECT_EQ(result.ranks(s).staleness_updates(), 1u);
        EXPECT_EQ(result.ranks(s).peak_activation_microbatches(), p - s);
      }
    }
  }
}

// As many microbatches as ranks are in flight during a round trip through the
// pipeline, which is the limit if transfers are slow. The period is then p
// microbatches, independent of the number in a batch.
TEST(SimulatorClosedFormTest, LongHopsLimitSchedulesWithoutFlush) {
  for (const char* schedule : {"pipedream", "pipedream-2bw"}) {
    for (int p = 2; p <= 8; ++p) {
      for (int m : {p, p + 1, 2 * p - 1}) {
        for (double c : {0.3, 3.0, 10.0}) {
          const Result result = RunScenario({.schedule = schedule,
                                             .num_ranks = p,
                                             .num_microbatches = m,
                                             .hop_seconds = c});
          const double round_trip =
              p * (kForward + kBackward) + 2 * (p - 1) * c;
          EXPECT_TRUE(result.steady_state());
          ExpectEqual(result.batch_seconds(), m * round_trip / p);
          ExpectEqual(result.idle_ratio(),
                      1 - p * (kForward + kBackward) / round_trip);
        }
      }
    }
  }
}

TEST(SimulatorClosedFormTest, PipeDreamRunsAtTheSlowestStage) {
  for (int p = 2; p <= 8; ++p) {
    GivenScenario given{
        .schedule = "pipedream", .num_ranks = p, .num_microbatches = 2 * p};
    given.forward_seconds.assign(p, kForward);
    given.backward_seconds.assign(p, kBackward);
    given.backward_seconds[p / 2] = 2 * kBackward;
    const Result result = RunScenario(given);
    EXPECT_TRUE(result.steady_state());
    ExpectEqual(result.batch_seconds(), 2 * p * (kForward + 2 * kBackward));
    for (int s = 0; s < p; ++s) {
      EXPECT_EQ(result.ranks(s).weight_versions(),
                static_cast<uint32_t>(p - s));
      EXPECT_EQ(result.ranks(s).staleness_updates(),
                static_cast<uint32_t>(p - 1 - s));
    }
  }
}

}  // namespace weir::sim::closed_forms_test
