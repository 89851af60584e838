// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/frequency_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plan/energy/frequency_views.h"
#include "schedules/registry.h"

namespace weir::plan::frequency_plan_test {

using testing::HasSubstr;

constexpr double kClose = 1e-9;

// Two stages; the second one is twice as long. Slower clocks save a third of
// the energy in twice the time.
FrequencyRequest Request() {
  FrequencyRequest request;
  request.name = "p.csv";
  request.profile =
      *ReadClockProfile("p.csv",
                        "stage,instruction,frequency,time,energy\n"
                        "0,forward,1400,1,300\n0,forward,700,2,200\n"
                        "0,backward,1400,2,600\n0,backward,700,4,400\n"
                        "1,forward,1400,2,600\n1,forward,700,4,400\n"
                        "1,backward,1400,4,1200\n1,backward,700,8,800\n");
  schedules::ScheduleSpec spec;
  spec.num_ranks = 2;
  spec.num_microbatches = 4;
  request.schedule = *schedules::GenerateSchedule("1f1b", spec);
  request.blocking_watts = 50;
  return request;
}

FrequencyReport Plan(const FrequencyRequest& request) {
  const auto report = PlanFrequencies(request);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.value_or(FrequencyReport{});
}

TEST(FrequencyPlanTest, StagesWithSlackRunSlowlyForFree) {
  const FrequencyReport report = Plan(Request());
  // Stage 1 runs all the time after the first forward: 1 + 4 (2 + 4) + 2.
  EXPECT_NEAR(report.baseline_seconds, 27, kClose);
  // Passes, and 50 W for 54 GPU seconds less those of passes (12 + 24).
  EXPECT_NEAR(report.baseline_joules, 4 * 2700 + 50 * (54 - 36), 1e-6);
  EXPECT_NEAR(report.fastest.seconds, 27, kClose);
  // Forwards 1 to 3 and backwards 0 to 2 of stage 0 have slack for low clocks;
  // each saves 100 or 200 J and what the GPU would take while it waits.
  const double saved = 3 * (100 + 50) + 3 * (200 + 100);
  EXPECT_NEAR(report.fastest.joules, report.baseline_joules - saved, 1e-6);
  EXPECT_NEAR(report.fastest.lower_bound_joules, report.fastest.joules, 1e-3);
}

TEST(FrequencyPlanTest, TheSlowestPlanHasTheLowestClocks) {
  FrequencyRequest request = Request();
  request.deadlines = {1000};
  const FrequencyReport report = Plan(request);
  ASSERT_EQ(report.points.size(), 1u);
  EXPECT_NEAR(report.points[0].seconds, 54, kClose);
  EXPECT_NEAR(report.points[0].joules, 4 * 1800 + 50 * (108 - 72), 1e-6);
  for (const ClockPoint& clock : report.points[0].plan.clocks) {
    EXPECT_EQ(clock.megahertz, 700);
  }
  const std::string csv = ClocksCsv(report, report.points[0]);
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n');
  EXPECT_TRUE(IsClocksHeader(lines[0]));
  EXPECT_EQ(lines[1], "0,0F0,700,2,200");
  EXPECT_EQ(lines.size(), 16u + 2u);
}

TEST(FrequencyPlanTest, StragglersLeaveTime) {
  FrequencyRequest request = Request();
  request.stragglers = {1, 1.5, 2, 4};
  const FrequencyReport report = Plan(request);
  ASSERT_EQ(report.stragglers.size(), 4u);
  EXPECT_NEAR(report.stragglers[0].joules, report.fastest.joules, 1e-6);
  EXPECT_NEAR(report.stragglers[1].iteration_seconds, 40.5, kClose);
  EXPECT_NEAR(report.stragglers[1].baseline_joules, 4 * 2700 + 50 * (81 - 36),
              1e-6);
  EXPECT_LE(report.stragglers[1].point.seconds, 40.5);
  // From twice the time on, all clocks are low and the rest is waited for.
  EXPECT_NEAR(report.stragglers[2].joules, 4 * 1800 + 50 * (108 - 72), 1e-6);
  EXPECT_NEAR(report.stragglers[3].joules, 4 * 1800 + 50 * (216 - 72), 1e-6);
}

TEST(FrequencyPlanTest, LeastEnergyBalancesPassesAndWaiting) {
  FrequencyRequest request = Request();
  request.blocking_watts = 120;
  // A slower pass saves 100 W and what its GPU would take while it waits, less
  // than two waiting GPUs.
  const FrequencyReport report = Plan(request);
  EXPECT_NEAR(report.least.seconds, 27, kClose);
  request.blocking_watts = 20;
  EXPECT_NEAR(Plan(request).least.seconds, 54, kClose);
}

// Four stages wait for each other. Their clocks between the two corners of the
// hull save little, so that some microbatches should have the high clock and
// some the low one; the last stage has clocks at all times.
TEST(FrequencyPlanTest, StagesThatWaitForEachOtherChangeClocksTogether) {
  std::string profile = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < 4; ++stage) {
    absl::StrAppend(&profile, stage, ",forward,1400,1,200\n");
    for (int i = 0; i <= 10; ++i) {
      const double part = i / 10.0;  // from the high clock to the low one
      const double saved = stage == 3 ? 120 * part * (2 - part) / 2
                           : i == 10  ? 80
                                      : 10 * part;
      absl::StrAppend(&profile, stage, ",backward,", 1400 - 50 * i, ",",
                      2 + 0.2 * part + (stage == 3 ? 0.003 * i * i : 0), ",",
                      400 - saved, "\n");
    }
  }
  FrequencyRequest request = Request();
  request.profile = *ReadClockProfile("p.csv", profile);
  schedules::ScheduleSpec spec;
  spec.num_ranks = 4;
  spec.num_microbatches = 24;
  request.schedule = *schedules::GenerateSchedule("1f1b", spec);
  const double fastest = Plan(request).fastest.seconds;
  for (int i = 1; i < 20; ++i) request.deadlines.push_back(fastest + 0.2 * i);
  const FrequencyReport report = Plan(request);
  ASSERT_EQ(report.points.size(), 19u);
  for (const FrequencyPoint& point : report.points) {
    EXPECT_LE(point.seconds, point.deadline_seconds * (1 + kClose));
    EXPECT_LE(point.joules, 1.008 * point.lower_bound_joules)
        << point.deadline_seconds;
  }
}

TEST(FrequencyPlanTest, DeadlinesBelowTheFastestAreReported) {
  FrequencyRequest request = Request();
  request.deadlines = {20, 27, 30};
  const FrequencyReport report = Plan(request);
  EXPECT_EQ(report.infeasible_deadlines, std::vector<double>{20});
  ASSERT_EQ(report.points.size(), 2u);
  EXPECT_EQ(report.points[0].deadline_seconds, 30);
  EXPECT_LE(report.points[0].seconds, 30);
  EXPECT_LE(report.points[0].joules, report.points[1].joules);
}

// Three clocks, with the least energy between the longest and the shortest
// iteration.
FrequencyRequest CurvedRequest(double blocking_watts) {
  FrequencyRequest request = Request();
  for (auto& [key, points] : request.profile.passes) {
    const ClockPoint& low = points[0];
    const ClockPoint& high = points[1];
    points.insert(points.begin() + 1, {1000, 0.625 * low.seconds,
                                       0.3 * low.joules + 0.7 * high.joules});
    points[1].joules *= 0.85;
  }
  request.blocking_watts = blocking_watts;
  return request;
}

TEST(FrequencyPlanTest, TheLowerBoundHoldsAndLongerDeadlinesTakeNoMore) {
  for (const double watts : {50.0, 90.0, 120.0}) {
    FrequencyRequest request = CurvedRequest(watts);
    for (double deadline = 27; deadline < 70; deadline += 0.7) {
      request.deadlines.push_back(deadline);
    }
    const FrequencyReport report = Plan(request);
    ASSERT_EQ(report.points.size(), request.deadlines.size());
    double last = 0;
    for (const FrequencyPoint& point : report.points) {
      EXPECT_GE(point.joules, point.lower_bound_joules - 1e-6);
      EXPECT_LE(point.seconds, point.deadline_seconds * (1 + kClose));
      EXPECT_GE(point.joules, last);
      EXPECT_GE(point.joules, report.least.joules);
      last = point.joules;
    }
    EXPECT_EQ(report.points.front().joules, report.least.joules);
    EXPECT_EQ(report.points.front().lower_bound_joules,
              report.least.lower_bound_joules);
  }
}

TEST(FrequencyPlanTest, TheFrontierEndsAtTheLeastEnergy) {
  FrequencyRequest request = Request();
  request.blocking_watts = 120;
  FrequencyReport report = Plan(request);
  ASSERT_EQ(report.points.size(), 1u);  // the least energy is the fastest plan
  EXPECT_NEAR(report.points[0].seconds, 27, kClose);
  // A deadline beyond it has that plan, too.
  request.deadlines = {40};
  report = Plan(request);
  EXPECT_NEAR(report.points.at(0).seconds, 27, kClose);
  EXPECT_EQ(report.points.at(0).joules, report.least.joules);
}

TEST(FrequencyPlanTest, AUnitAboveTheShortestPassIsRefused) {
  FrequencyRequest request = Request();
  request.unit_seconds = 1.5;
  EXPECT_THAT(std::string(PlanFrequencies(request).status().message()),
              HasSubstr("--unit-seconds is 1.5, expected at most 1, the"));
}

TEST(FrequencyPlanTest, RoundedDurationsAreMeasuredAgain) {
  FrequencyRequest request = Request();
  request.unit_seconds = 0.75;  // 1, 2, 4, 8 become 0.75, 1.5, 3.75, 7.5
  const FrequencyReport report = Plan(request);
  EXPECT_NEAR(report.measured_baseline_seconds, 27, kClose);
  EXPECT_NEAR(report.baseline_seconds, 0.75 + 4 * 5.25 + 1.5, kClose);
  EXPECT_NEAR(report.measured_baseline_joules, 4 * 2700 + 50 * 18, 1e-6);
  EXPECT_NEAR(report.baseline_joules, 4 * 2700 + 50 * (46.5 - 36), 1e-6);
}

TEST(FrequencyPlanTest, OneClockHasOnePoint) {
  FrequencyRequest request = Request();
  for (auto& [key, points] : request.profile.passes) points.resize(1);
  const FrequencyReport report = Plan(request);
  EXPECT_EQ(report.num_pieces, 0);
  EXPECT_NEAR(report.fastest.joules, report.baseline_joules, 1e-6);
  EXPECT_NEAR(report.least.seconds, report.baseline_seconds, kClose);
}

TEST(FrequencyPlanTest, TheBoundCountsSlackIfNoClockChangesTheLength) {
  FrequencyRequest request = Request();
  request.profile =
      *ReadClockProfile("p.csv",
                        "stage,instruction,frequency,time,energy\n"
                        "0,forward,1400,10,3000\n"
                        "0,backward,1400,10,3000\n"
                        "1,forward,1400,1,300\n"
                        "1,forward,700,2,200\n"
                        "1,backward,1400,1,300\n"
                        "1,backward,700,2,200\n");
  schedules::ScheduleSpec spec;
  spec.num_ranks = 2;
  spec.num_microbatches = 2;
  request.schedule = *schedules::GenerateSchedule("1f1b", spec);
  const FrequencyReport report = Plan(request);
  EXPECT_EQ(report.num_pieces, 0);
  EXPECT_NEAR(report.fastest.seconds, 40, kClose);
  // 40 and 8 of 80 GPU seconds are busy.
  EXPECT_NEAR(report.fastest.joules, 4 * 3000 + 4 * 200 + 50 * (80 - 48), 1e-6);
  EXPECT_NEAR(report.fastest.lower_bound_joules, report.fastest.joules, 1e-6);
}

TEST(FrequencyPlanTest, ViewsShowTheReport) {
  FrequencyRequest request = Request();
  request.stragglers = {1.2};
  request.num_deadlines = 3;
  const FrequencyReport report = Plan(request);
  EXPECT_THAT(FrequencyTable(report), HasSubstr("least energy"));
  const auto json = nlohmann::json::parse(FrequencyJson(report));
  EXPECT_EQ(json["frontier"].size(), 3u);
  EXPECT_TRUE(json["frontier"][0].contains("lower_bound_joules"));
  EXPECT_NEAR(json["baseline"]["seconds"].get<double>(), 27, kClose);
  EXPECT_EQ(json["stragglers"].size(), 1u);
  // Two plans, two stages, two operations.
  ASSERT_EQ(json["clocks"].size(), 8u);
  // Forward 0 and backward 3 of stage 0 have no slack at the highest clocks.
  const auto& forwards = json["clocks"][0];
  EXPECT_EQ(forwards["plan"], "fastest");
  EXPECT_EQ(forwards["operation"], "F");
  EXPECT_EQ(forwards["num_passes"], 4);
  EXPECT_EQ(forwards["lowest_mhz"], 700);
  EXPECT_EQ(forwards["mean_mhz"], (1400 + 3 * 700) / 4.0);
  EXPECT_EQ(forwards["highest_mhz"], 1400);
  EXPECT_EQ(json["clocks"][2]["lowest_mhz"], 1400);  // stage 1
  EXPECT_NO_THROW(nlohmann::json::parse(FrequencyConfigJson(report)));
  EXPECT_THAT(FrequencyCsv(report), HasSubstr("\n54,54,"));
  request.stragglers = {0.5};
  EXPECT_THAT(std::string(PlanFrequencies(request).status().message()),
              HasSubstr("--stragglers is 0.5"));
}

// Mean power falls with the length of an iteration.
TEST(FrequencyPlanTest, PowerCapsGiveTheFastestPlanWithinThem) {
  FrequencyRequest request = Request();
  const FrequencyReport free = Plan(request);
  const auto watts = [](const FrequencyPoint& point) {
    return point.joules / point.seconds / 2;
  };
  EXPECT_FALSE(free.capped.has_value());
  request.most_watts = 1.01 * watts(free.fastest);
  const FrequencyReport loose = Plan(request);
  ASSERT_TRUE(loose.capped.has_value());
  EXPECT_NEAR(loose.capped->seconds, free.fastest.seconds, kClose);
  request.deadlines = {1000};
  const double lowest = watts(Plan(request).points[0]);
  request.deadlines.clear();
  request.most_watts = 0.99 * lowest;
  const FrequencyReport none = Plan(request);
  EXPECT_FALSE(none.capped.has_value());
  EXPECT_THAT(FrequencyTable(none), HasSubstr("No plan takes at most"));
  request.num_deadlines = 200;
  for (const double part : {0.2, 0.5, 0.8}) {
    request.most_watts = lowest + part * (watts(free.fastest) - lowest);
    const FrequencyReport report = Plan(request);
    ASSERT_TRUE(report.capped.has_value()) << part;
    EXPECT_LE(watts(*report.capped), request.most_watts * (1 + 1e-9));
    EXPECT_GE(report.capped->seconds, report.capped_bound_seconds * (1 - 1e-9));
    for (const FrequencyPoint& point : report.points) {
      if (point.seconds < report.capped_bound_seconds * (1 - 1e-9)) {
        EXPECT_GT(watts(point), request.most_watts);
      }
    }
    const auto json = nlohmann::json::parse(FrequencyJson(report));
    EXPECT_EQ(json["power_cap"]["plan"]["joules"], report.capped->joules);
  }
}

}  // namespace weir::plan::frequency_plan_test
