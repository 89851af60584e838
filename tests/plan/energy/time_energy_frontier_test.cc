// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/time_energy_frontier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "plan/energy/clock_plan.h"
#include "schedules/registry.h"

namespace weir::plan::time_energy_frontier_test {

using schedules::Op;

constexpr double kClose = 1e-9;

PassGraph GraphOf(const std::string& schedule, int ranks, int microbatches,
                  const ClockProfile& profile, double watts) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = ranks;
  spec.num_microbatches = microbatches;
  spec.num_chunks = profile.num_stages / ranks;
  const auto made = schedules::GenerateSchedule(schedule, spec);
  EXPECT_TRUE(made.ok()) << made.status();
  const auto graph =
      GraphOfPasses(*made, profile, watts, {.ticks_per_second = 1});
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

// Clocks with which passes take whole seconds; every stage differs.
ClockProfile Profile(int num_stages, int num_clocks) {
  ClockProfile profile;
  profile.num_stages = num_stages;
  for (int stage = 0; stage < num_stages; ++stage) {
    for (const Op op : {Op::kForward, Op::kBackward}) {
      auto& points = profile.passes[{stage, op}];
      const double work = op == Op::kForward ? 1 : 2;
      double joules = 100 * work + 7 * stage;
      for (int clock = 0; clock < num_clocks; ++clock) {
        points.push_back({1400.0 - 100 * clock, work + clock, joules});
        joules -=
            (12.0 + 3 * stage) / (clock + 1) * (op == Op::kForward ? 1 : 2);
      }
      std::reverse(points.begin(), points.end());
    }
  }
  return profile;
}

struct Frontier {
  std::map<Ticks, double> joules;  // relaxed, by whole deadline
  std::map<Ticks, ClockPlan> plans;
};

Frontier WalkAll(const PassGraph& graph) {
  Frontier frontier;
  Slope last = 0;
  const absl::Status status =
      WalkFrontier(graph, [&](const FrontierPiece& piece) {
        EXPECT_GE(piece.slope, last);  // convex
        last = piece.slope;
        EXPECT_GT(piece.longest, piece.shortest);
        const double high = AddedJoules(graph, piece.TimesAt(piece.longest));
        const double low = AddedJoules(graph, piece.TimesAt(piece.shortest));
        const double seconds =
            static_cast<double>(piece.longest - piece.shortest);
        EXPECT_NEAR(low - high,
                    1e-6 * static_cast<double>(piece.slope) * seconds,
                    1e-5 * seconds);
        for (Ticks at = piece.longest; at >= piece.shortest; --at) {
          const std::vector<Ticks> times = piece.TimesAt(at);
          frontier.joules[at] = AddedJoules(graph, times);
          frontier.plans[at] = ChooseClocks(graph, times);
        }
        return true;
      });
  EXPECT_TRUE(status.ok()) << status;
  return frontier;
}

// The least energy by length of the iteration, over all durations in whole
// seconds. Least energies are attained there, because the corners are whole.
std::map<Ticks, double> LeastByTrying(const PassGraph& graph) {
  std::map<Ticks, double> least;
  std::vector<Ticks> durations;
  for (int pass = 0; pass < static_cast<int>(graph.passes.size()); ++pass) {
    durations.push_back(graph.CurveOfPass(pass).shortest());
  }
  while (true) {
    double joules = 0;
    for (int pass = 0; pass < static_cast<int>(durations.size()); ++pass) {
      joules += graph.CurveOfPass(pass).JoulesOf(durations[pass]);
    }
    const Ticks end = graph.EarliestTimes(durations)[graph.sink];
    const auto [found, is_new] = least.try_emplace(end, joules);
    if (!is_new) found->second = std::min(found->second, joules);
    size_t pass = 0;
    while (pass < durations.size() &&
           ++durations[pass] >
               graph.CurveOfPass(static_cast<int>(pass)).longest()) {
      durations[pass] = graph.CurveOfPass(static_cast<int>(pass)).shortest();
      ++pass;
    }
    if (pass == durations.size()) return least;
  }
}

TEST(TimeEnergyFrontierTest, IsTheLeastOfAllDurations) {
  struct Case {
    const char* schedule;
    int ranks, microbatches, clocks;
    double watts;
  };
  for (const Case& each :
       {Case{"1f1b", 1, 1, 3, 0}, Case{"1f1b", 2, 1, 4, 5},
        Case{"1f1b", 2, 2, 3, 5}, Case{"gpipe", 2, 2, 3, 1},
        Case{"gpipe", 1, 4, 3, 0}, Case{"1f1b", 4, 1, 3, 2}}) {
    const PassGraph graph =
        GraphOf(each.schedule, each.ranks, each.microbatches,
                Profile(each.ranks, each.clocks), each.watts);
    const Frontier frontier = WalkAll(graph);
    const std::map<Ticks, double> tried = LeastByTrying(graph);
    ASSERT_FALSE(frontier.joules.empty());
    EXPECT_EQ(frontier.joules.begin()->first, tried.begin()->first);
    double best = std::numeric_limits<double>::infinity();
    for (const auto& [end, joules] : tried) {
      best = std::min(best, joules);
      const auto found = frontier.joules.find(end);
      if (found == frontier.joules.end()) {
        // Longer than useful.
        EXPECT_GT(end, frontier.joules.rbegin()->first);
        EXPECT_NEAR(frontier.joules.rbegin()->second, best, kClose * best);
        continue;
      }
      EXPECT_NEAR(found->second, best, 1e-9 * best)
          << each.schedule << " " << each.ranks << " at " << end;
      // Every duration in whole seconds is a clock here.
      const ClockPlan& plan = frontier.plans.at(end);
      EXPECT_LE(plan.ticks, end);
      EXPECT_GE(plan.added_joules, best - kClose * best);
    }
  }
}

TEST(TimeEnergyFrontierTest, AChainShortensTheCheapestPassFirst) {
  // One rank: the passes run one after another, and slopes are sorted.
  const PassGraph graph = GraphOf("1f1b", 1, 2, Profile(1, 3), 0);
  std::vector<double> slopes;
  for (const PassOfGraph& pass : graph.passes) {
    for (const Slope slope : graph.curves[pass.curve].slopes) {
      slopes.push_back(1e-6 * static_cast<double>(slope));
    }
  }
  std::sort(slopes.begin(), slopes.end());
  const Frontier frontier = WalkAll(graph);
  Ticks end = frontier.joules.rbegin()->first;
  double joules = frontier.joules.rbegin()->second;
  for (const double slope : slopes) {
    joules += slope;
    EXPECT_NEAR(frontier.joules.at(--end), joules, kClose * joules);
  }
  EXPECT_EQ(end, frontier.joules.begin()->first);
}

TEST(TimeEnergyFrontierTest, PlansHaveTheClocksOfTheirDurations) {
  for (const char* schedule : {"1f1b", "gpipe", "interleaved-1f1b"}) {
    const bool chunks = std::string(schedule) == "interleaved-1f1b";
    const PassGraph graph =
        GraphOf(schedule, 4, 8, Profile(chunks ? 8 : 4, 4), 3);
    const Frontier frontier = WalkAll(graph);
    for (const auto& [end, plan] : frontier.plans) {
      EXPECT_LE(plan.ticks, end);
      EXPECT_NEAR(plan.seconds, static_cast<double>(plan.ticks), kClose * end);
      EXPECT_GE(plan.added_joules, frontier.joules.at(end) * (1 - kClose));
      EXPECT_LE(plan.added_joules, frontier.joules.at(end) * 1.01);
      EXPECT_EQ(plan.clocks.size(), graph.passes.size());
      double busy = 0;
      for (const ClockPoint& clock : plan.clocks) busy += clock.joules;
      EXPECT_NEAR(plan.busy_joules, busy, kClose * busy);
    }
  }
}

TEST(TimeEnergyFrontierTest, ManyMicrobatchesOnUnequalStages) {
  // The result is exact, so walking twice gives the same pieces, and the
  // shortest time is that of the highest clocks.
  const PassGraph graph = GraphOf("1f1b", 8, 64, Profile(8, 5), 2);
  std::vector<Ticks> durations;
  for (int pass = 0; pass < static_cast<int>(graph.passes.size()); ++pass) {
    durations.push_back(graph.CurveOfPass(pass).shortest());
  }
  const Frontier frontier = WalkAll(graph);
  EXPECT_EQ(frontier.joules.begin()->first,
            graph.EarliestTimes(durations)[graph.sink]);
  double last = std::numeric_limits<double>::infinity();
  for (const auto& [end, joules] : frontier.joules) {
    EXPECT_LE(joules, last);
    last = joules;
  }
}

TEST(TimeEnergyFrontierTest, UnsuitableSchedulesAreRefused) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = 2;
  spec.num_microbatches = 4;
  const auto refused = [&](const std::string& name, int num_stages) {
    const auto schedule = schedules::GenerateSchedule(name, spec);
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    return std::string(GraphOfPasses(*schedule, Profile(num_stages, 2), 0, {})
                           .status()
                           .message());
  };
  EXPECT_NE(refused("1f1b", 3).find("has 2 stages, expected"),
            std::string::npos);
  EXPECT_NE(refused("pipedream", 2).find("has no flush"), std::string::npos);
  EXPECT_NE(refused("zb-h1", 2).find("which the profile does not have"),
            std::string::npos);
}

// Slopes of gigawatts, from clocks whose times hardly differ: the least energy
// of a chain still follows from its steepest pieces in order.
TEST(TimeEnergyFrontierTest, SteepSlopesAreNotCut) {
  ClockProfile profile;
  profile.num_stages = 1;
  for (const Op op : {Op::kForward, Op::kBackward}) {
    const double joules = op == Op::kForward ? 300 : 900;
    profile.passes[{0, op}] = {
        {600, 2, 100}, {1200, 1 + 1e-7, joules}, {1400, 1, joules + 400}};
  }
  schedules::ScheduleSpec spec;
  spec.num_ranks = 1;
  spec.num_microbatches = 64;
  const auto made = schedules::GenerateSchedule("1f1b", spec);
  ASSERT_TRUE(made.ok());
  const auto graph =
      GraphOfPasses(*made, profile, 0, {.ticks_per_second = 1e12});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_LT(graph->slopes_per_watt, 1e6);
  // From the slowest clocks: first all forwards to 1,200 MHz (200 J), then all
  // backwards (800 J), then 1e-7 s for 400 J each.
  const auto expected = [](double seconds) {
    const double shorter = 256 - seconds;
    double joules = 128 * 100.0;
    joules += 200 / (1 - 1e-7) * std::min(shorter, 64 * (1 - 1e-7));
    joules += 800 / (1 - 1e-7) *
              std::clamp(shorter - 64 * (1 - 1e-7), 0.0, 64 * (1 - 1e-7));
    joules += 400 / 1e-7 * std::max(shorter - 128 * (1 - 1e-7), 0.0);
    return joules;
  };
  int num_pieces = 0;
  ASSERT_TRUE(WalkFrontier(*graph, [&](const FrontierPiece& piece) {
                ++num_pieces;
                const double joules =
                    AddedJoules(*graph, piece.TimesAt(piece.shortest));
                EXPECT_NEAR(joules, expected(1e-12 * piece.shortest),
                            1e-6 * joules);
                return true;
              }).ok());
  EXPECT_GT(num_pieces, 2);
}

}  // namespace weir::plan::time_energy_frontier_test
