// SPDX-License-Identifier: Apache-2.0
// Checks the published makespans and peaks of every kind with the longest path.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "schedules/registry.h"
#include "schedules/validate.h"
#include "tests/oracle.h"

namespace weir::schedules::closed_forms_test {

constexpr double kForward = 1.0;
constexpr double kBackward = 2.1;
constexpr double kBoth = kForward + kBackward;
constexpr double kLatencies[] = {0, 0.13, 1.4, 5};

Schedule Generate(absl::string_view name, const ScheduleSpec& spec) {
  absl::StatusOr<Schedule> schedule = GenerateSchedule(name, spec);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_TRUE(ValidateSchedule(*schedule).ok()) << ValidateSchedule(*schedule);
  return *std::move(schedule);
}

oracle::Timing Time(const Schedule& schedule, double latency_seconds = 0) {
  const int chunks = schedule.num_stages / schedule.num_ranks;
  oracle::Costs costs =
      oracle::EqualStages(schedule, kForward / chunks, kBackward / chunks);
  costs.latency_seconds = latency_seconds;
  absl::StatusOr<oracle::Timing> timing = oracle::Evaluate(schedule, costs);
  EXPECT_TRUE(timing.ok()) << timing.status();
  return *std::move(timing);
}

void ExpectClose(double found, double expected) {
  EXPECT_NEAR(found, expected, 1e-9 * std::max(1.0, expected));
}

// Calls check(p, m) for every shape of up to 16 ranks and 64 microbatches.
template <typename Check>
void ForAllShapes(const Check& check) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 1; m <= 64; ++m) {
      SCOPED_TRACE(absl::StrCat("p ", p, " m ", m));
      check(p, m);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(ClosedForms, GPipeFillsAndDrainsTwice) {
  ForAllShapes([](int p, int m) {
    const Schedule schedule =
        Generate("gpipe", {.num_ranks = p, .num_microbatches = m});
    for (double c : kLatencies) {
      const oracle::Timing timing = Time(schedule, c);
      ExpectClose(timing.makespan_seconds,
                  (m + p - 1) * kBoth + 2 * (p - 1) * c);
      for (int s = 0; s < p; ++s) {
        EXPECT_EQ(timing.peak_microbatches[s], m);
        ExpectClose(timing.busy_seconds[s], m * kBoth);
      }
    }
  });
}

TEST(ClosedForms, GPipeTakesAsLongWithBackwardsInForwardOrder) {
  ForAllShapes([](int p, int m) {
    Schedule schedule =
        Generate("gpipe", {.num_ranks = p, .num_microbatches = m});
    const double c = 0.13;
    const double reversed_seconds = Time(schedule, c).makespan_seconds;
    for (std::vector<Action>& actions : schedule.rank_actions) {
      std::reverse(actions.begin() + m, actions.end());
      ASSERT_EQ(actions[m].microbatch, 0);
    }
    ExpectClose(Time(schedule, c).makespan_seconds, reversed_seconds);
  });
}

TEST(ClosedForms, FlushPaysTwoHopsForNearlyEveryMicrobatch) {
  ForAllShapes([](int p, int m) {
    const Schedule schedule =
        Generate("1f1b", {.num_ranks = p, .num_microbatches = m});
    const int hops = p + m - 2 - (m - 1 + p - 1) / p;
    for (double c : kLatencies) {
      const oracle::Timing timing = Time(schedule, c);
      ExpectClose(timing.makespan_seconds, (m + p - 1) * kBoth + 2 * c * hops);
      for (int s = 0; s < p; ++s) {
        EXPECT_EQ(timing.peak_microbatches[s], std::min(p - s, m));
      }
    }
  });
}

TEST(ClosedForms, InterleavedDividesTheBubbleByTheChunks) {
  ForAllShapes([](int p, int m) {
    if (m % p != 0) return;
    for (int v : {2, 3, 4}) {
      const Schedule schedule =
          Generate("interleaved-1f1b",
                   {.num_ranks = p, .num_microbatches = m, .num_chunks = v});
      // Larger latencies can be on the steady path, unless all is warm-up.
      const double largest = kForward / v;
      for (double c : {0.0, 0.05, m == p ? 5.0 : largest}) {
        const oracle::Timing timing = Time(schedule, c);
        const int hops = p == 1 ? 0 : 2 * v * p - 2;
        ExpectClose(timing.makespan_seconds,
                    m * kBoth + (p - 1) * kBoth / v + hops * c);
        for (int s = 0; s < p; ++s) {
          const int chunks =
              m == p ? m * v
                     : std::min(2 * (p - s - 1) + (v - 1) * p + 1, m * v);
          EXPECT_DOUBLE_EQ(timing.peak_microbatches[s], chunks / double(v));
        }
      }
    }
  });
}

// Both kinds without a flush run the same continuous 1F1B.
TEST(ClosedForms, WithoutFlushOnlyTheEndsAreIdle) {
  ForAllShapes([](int p, int m) {
    constexpr int kBatches = 3;
    for (absl::string_view name : {"pipedream", "pipedream-2bw"}) {
      if (name == "pipedream-2bw" && m < p) continue;
      const Schedule schedule = Generate(
          name,
          {.num_ranks = p, .num_microbatches = m, .num_batches = kBatches});
      const int total = kBatches * m;
      const oracle::Timing timing = Time(schedule);
      ExpectClose(timing.makespan_seconds, (total + p - 1) * kBoth);
      for (int s = 0; s < p; ++s) {
        EXPECT_EQ(timing.peak_microbatches[s], std::min(p - s, total));
        // From the first backward to the last forward.
        const int warmup = std::min(p - 1 - s, total);
        for (int i = warmup + 1; i + 1 < 2 * total - warmup; ++i) {
          ExpectClose(timing.start_seconds[s][i + 1], timing.end_seconds[s][i]);
        }
      }
    }
  });
}

TEST(ClosedForms, NoScheduleBeatsTheLowerBounds) {
  ForAllShapes([](int p, int m) {
    for (absl::string_view name : {"gpipe", "1f1b"}) {
      const Schedule schedule =
          Generate(name, {.num_ranks = p, .num_microbatches = m});
      for (double c : kLatencies) {
        const oracle::Timing timing = Time(schedule, c);
        EXPECT_GE(timing.makespan_seconds + 1e-9, p * kBoth + 2 * (p - 1) * c);
        for (int s = 0; s < p; ++s) {
          ExpectClose(timing.busy_seconds[s], m * kBoth);
          ExpectClose(timing.busy_seconds[s] + timing.idle_seconds[s],
                      timing.makespan_seconds);
        }
      }
    }
  });
}

}  // namespace weir::schedules::closed_forms_test
