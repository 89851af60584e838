// SPDX-License-Identifier: Apache-2.0
// Compares runs with omitted periods with whole runs.
#include "sim/fast/steady.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "schedules/registry.h"
#include "tests/sim/short_runs.h"

namespace weir::sim::steady_test {

struct Count {
  int all = 0, shortened = 0, extrapolated = 0;
};

Count Compare(const schedules::ScheduleKind& kind, int num_cases, bool shared,
              int seed) {
  Cases cases(seed);
  Count count;
  for (int k = 0; k < num_cases; ++k) {
    const std::optional<schedules::Schedule> schedule = cases.Next(kind);
    if (!schedule.has_value()) break;  // at most two microbatches per rank
    const World world = WorldFor(kind, *schedule, shared, &cases);
    const Extrapolated whole = Extrapolate(*schedule, world);
    ++count.all;
    count.shortened += whole.shortened;
    if (!whole.seconds.has_value()) continue;
    ++count.extrapolated;
    const double expected = OneRun(*schedule, world).Makespan();
    EXPECT_NEAR(*whole.seconds, expected, 1e-9 * expected)
        << kind.name << " case " << k << " p " << schedule->num_ranks << " m "
        << schedule->num_microbatches << " stages " << schedule->num_stages;
  }
  return count;
}

// GPipe's ranks drift apart if their stages differ, as forwards do not wait.
bool Drifts(const schedules::ScheduleKind& kind) {
  return kind.name == "gpipe" || kind.name == "breadth-first" ||
         kind.name == "2bp-gpipe";
}

TEST(SteadyTest, ExtrapolatedIsTheWholeRun) {
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    if (!kind.flush) continue;
    const Count count = Compare(kind, 80, false, 1);
    EXPECT_GE(count.shortened, 0.8 * count.all) << kind.name;
    EXPECT_GE(count.extrapolated, (Drifts(kind) ? 0.3 : 0.8) * count.all)
        << kind.name << " " << count.extrapolated;
  }
}

TEST(SteadyTest, ExtrapolatedIsTheWholeRunOnSharedLinks) {
  int num_all = 0, num_extrapolated = 0;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    if (!kind.flush) continue;
    const Count count = Compare(kind, 5, true, 2);
    num_all += count.all;
    num_extrapolated += count.extrapolated;
  }
  EXPECT_GE(num_extrapolated, 0.8 * num_all);
}

// The duration of the last period is a wrong extrapolation: the last periods of
// a short run may be alike on every rank only for a while, or not at all.
TEST(SteadyTest, WhatTheLastPeriodTookWouldOftenBeWrong) {
  const schedules::ScheduleKind& kind = **schedules::FindScheduleKind("1f1b");
  Cases cases(5);
  int num_wrong = 0;
  for (int k = 0; k < 300; ++k) {
    const schedules::Schedule schedule = *cases.Next(kind);
    const World world = WorldFor(kind, schedule, false, &cases);
    const auto shortened = ShortenSchedule(schedule, {.num_periods_kept = 6});
    if (!shortened.has_value()) continue;
    const OneRun run(shortened->schedule, world);
    const Stretch& stretch = shortened->stretches[0][0];
    const auto start = run.recording.start_seconds();
    const int32_t last = run.graph.ActionTask(0, stretch.end - 1);
    const double naive =
        run.Makespan() +
        shortened->num_periods_left_out *
            (start[last] - start[last - stretch.period_actions]);
    const double expected = OneRun(schedule, world).Makespan();
    if (std::abs(naive - expected) <= 1e-9 * expected) continue;
    ++num_wrong;
    const auto seconds = SecondsLeftOut(*shortened, run.graph, run.recording);
    if (!seconds.has_value()) continue;
    EXPECT_NEAR(run.Makespan() + *seconds, expected, 1e-9 * expected) << k;
  }
  EXPECT_GE(num_wrong, 20);
}

// 1F1B on shared links.
class PlantedTest : public testing::Test {
 protected:
  PlantedTest() {
    schedules::ScheduleSpec spec;
    spec.num_ranks = 4;
    spec.num_microbatches = 120;
    StageCosts stage;
    stage.seconds.forward = 1;
    stage.seconds.backward = 2;
    stage.communication.output_bytes = 60e9;
    world_.costs.stages.assign(4, stage);
    world_.data = 2;
    world_.cluster = SharedNics(8, 100e9, 0.01);
    shortened_ = ShortenSchedule(*schedules::GenerateSchedule("1f1b", spec),
                                 {.num_periods_kept = 24, .multiple = 4});
    run_.emplace(shortened_->schedule, world_);
    found_ = Find();
  }

  std::optional<Steadiness> Find() const {
    return FindSteadiness(*shortened_, run_->graph, run_->recording);
  }

  World world_;
  std::optional<ShortenedSchedule> shortened_;
  std::optional<OneRun> run_;
  std::optional<Steadiness> found_;
};

// Each task in flight at T - Delta or at T must match its copy, including its
// past: a flow that shared its links with fewer flows has less left to send.
TEST_F(PlantedTest, EveryTaskUnderWayCounts) {
  ASSERT_TRUE(found_.has_value());
  const auto [at, period, multiple] = found_->cuts[0];
  const double begin = at - multiple * period;
  const TaskGraph& tasks = run_->graph.tasks;
  int num_flows = 0, num_timers = 0;
  for (int32_t task = 0; task < tasks.num_tasks(); ++task) {
    double& start = run_->recording.start_seconds()[task];
    double& end = run_->recording.end_seconds()[task];
    const auto is_under_way = [&](double t) { return start < t && end > t; };
    if (!is_under_way(begin) && !is_under_way(at)) continue;
    ++(tasks.is_timer(task) ? num_timers : num_flows);
    for (double* time : {&start, &end}) {
      const double was = *time;
      *time -= 1e-7 * period;
      const auto planted = Find();
      // Another point in time may be valid.
      EXPECT_TRUE(!planted.has_value() || planted->cuts[0].at_seconds != at)
          << task;
      *time = was;
    }
  }
  EXPECT_GE(num_flows, 4);
  EXPECT_GE(num_timers, 4);
}

TEST_F(PlantedTest, TooFewPeriodsAreDeclined) {
  schedules::ScheduleSpec spec;
  spec.num_ranks = 4;
  spec.num_microbatches = 60;
  const auto shortened = ShortenSchedule(
      *schedules::GenerateSchedule("1f1b", spec), {.num_periods_kept = 3});
  ASSERT_TRUE(shortened.has_value());
  const OneRun run(shortened->schedule, world_);
  EXPECT_FALSE(
      FindSteadiness(*shortened, run.graph, run.recording).has_value());
}

// GPipe's activations grow with each microbatch; 1F1B's do not.
TEST(SteadyTest, PeaksOfAllPeriods) {
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1",
                           "breadth-first", "chimera", "2bp-naive"}) {
    const schedules::ScheduleKind& kind = **schedules::FindScheduleKind(name);
    Cases cases(7);
    int num_compared = 0;
    for (int k = 0; k < 20; ++k) {
      const schedules::Schedule schedule = *cases.Next(kind);
      World world = WorldFor(kind, schedule, false, &cases);
      const auto shortened = ShortenSchedule(schedule);
      if (!shortened.has_value()) continue;
      const OneRun run(shortened->schedule, world);
      const auto steadiness =
          FindSteadiness(*shortened, run.graph, run.recording);
      if (!steadiness.has_value()) continue;
      const OneRun whole(schedule, world);
      for (int gpu = 0; gpu < schedule.num_ranks; ++gpu) {
        const double peak =
            PeakBytesOfAll(TraceMemory(run.Inputs(shortened->schedule, world),
                                       run.graph, run.recording, gpu, true),
                           *shortened, *steadiness);
        const double expected =
            TraceMemory(whole.Inputs(schedule, world), whole.graph,
                        whole.recording, gpu, false)
                .peak_bytes;
        EXPECT_NEAR(peak, expected, 1e-9 * expected) << name << " case " << k;
        ++num_compared;
      }
    }
    EXPECT_GE(num_compared, 5) << name;
  }
}

}  // namespace weir::sim::steady_test
