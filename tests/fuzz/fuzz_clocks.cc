// SPDX-License-Identifier: Apache-2.0
// Measured passes by clock: a whole file is read as it was written and planned;
// a damaged one gives an error or a plan with the same properties.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plan/energy/clock_profile_views.h"
#include "plan/energy/frequency_plan.h"
#include "plan/energy/frequency_views.h"
#include "plan/energy/time_energy_frontier.h"
#include "schedules/registry.h"
#include "tests/fuzz/target.h"

namespace weir::fuzz {
namespace {

std::string ProfileText(Choices* choices) {
  std::string text = "stage,instruction,frequency,time,energy\n";
  const int num_stages = choices->Int(1, 4);
  for (int stage = 0; stage < num_stages; ++stage) {
    for (const char* pass : {"forward", "backward"}) {
      const int num_clocks = choices->Int(1, 6);
      // First measurements by clock; further ones agree with them.
      std::map<int, std::pair<double, double>> measured;
      for (int i = 0; i < num_clocks; ++i) {
        const int clock = 100 * choices->Int(1, 20);
        const double seconds = choices->LogReal(1e-6, 10);
        const double joules = choices->LogReal(1e-3, 1e4);
        const auto [first, is_new] =
            measured.emplace(clock, std::make_pair(seconds, joules));
        absl::StrAppend(&text, stage, ",", pass, ",", clock, ",",
                        is_new ? seconds : 1.5 * first->second.first, ",",
                        is_new ? joules : 1.5 * first->second.second, "\n");
      }
    }
  }
  return text;
}

// Slopes are rounded to whole units, which may cost the frontier this many
// joules.
double RoundingJoules(const plan::FrequencyReport& report, double seconds) {
  return static_cast<double>(report.graph.passes.size()) * seconds /
         report.graph.slopes_per_watt;
}

bool PlansAreSound(const plan::FrequencyReport& report) {
  const double tiny = 1e-9 * std::abs(report.fastest.lower_bound_joules) + 1e-6;
  for (const plan::FrequencyPoint& point : report.points) {
    REQUIRE(point.seconds <= point.deadline_seconds * (1 + 1e-9));
    REQUIRE(point.lower_bound_joules >=
            report.least.lower_bound_joules - tiny -
                RoundingJoules(report, point.deadline_seconds));
    REQUIRE(point.joules >= point.lower_bound_joules - tiny -
                                RoundingJoules(report, point.deadline_seconds));
    REQUIRE(std::isfinite(point.joules) &&
            std::isfinite(point.measured_joules));
  }
  for (const plan::StragglerPoint& each : report.stragglers) {
    REQUIRE(each.point.seconds <= each.iteration_seconds * (1 + 1e-9));
  }
  REQUIRE(!plan::FrequencyTable(report).empty());
  REQUIRE(!plan::FrequencyJson(report).empty());
  REQUIRE(!plan::ClocksCsv(report, report.fastest).empty());
  return true;
}

bool FrontierIsConvex(const plan::PassGraph& graph) {
  plan::Slope last = 0;
  bool convex = true;
  const absl::Status status =
      plan::WalkFrontier(graph, [&](const plan::FrontierPiece& piece) {
        convex =
            convex && piece.slope >= last && piece.longest > piece.shortest;
        last = piece.slope;
        return true;
      });
  REQUIRE(status.ok());
  REQUIRE(convex);
  return true;
}

}  // namespace

bool RunInput(Choices* choices) {
  std::string text = ProfileText(choices);
  const bool damaged = choices->OneIn(3);
  if (damaged) text = Damage(std::move(text), choices);
  plan::FrequencyRequest request;
  const auto profile = plan::ReadClockProfile("fuzz", text);
  REQUIRE_THAT(profile.ok() || damaged, StatusText(profile) + "\n" + text);
  REQUIRE(damaged || plan::IsClockProfile(text));
  if (!profile.ok()) return false;
  REQUIRE(!plan::ClockProfileTable(*profile).empty());
  REQUIRE(!plan::ClockProfileJson(*profile).empty());
  if (profile->num_stages > 8) return false;
  request.profile = *profile;
  schedules::ScheduleSpec spec;
  spec.num_ranks = profile->num_stages;
  spec.num_microbatches = choices->Int(1, 4);
  const auto schedule =
      schedules::GenerateSchedule(choices->OneIn(2) ? "1f1b" : "gpipe", spec);
  REQUIRE_THAT(schedule.ok(), StatusText(schedule));
  request.schedule = *schedule;
  request.blocking_watts = choices->OneIn(3) ? 0 : choices->Real(0, 300);
  double shortest = 1;
  for (const auto& [key, points] : profile->passes) {
    for (const plan::ClockPoint& point : points) {
      shortest = std::min(shortest, point.seconds);
    }
  }
  request.unit_seconds = choices->OneIn(3) && shortest > 1e-8
                             ? choices->LogReal(1e-9, shortest)
                             : 0;
  request.num_deadlines = choices->Int(1, 5);
  request.stragglers = {choices->Real(1, 3)};
  const auto report = plan::PlanFrequencies(request);
  if (!report.ok()) {
    // A damaged file may lack a pass of the schedule.
    REQUIRE_THAT(damaged && absl::IsInvalidArgument(report.status()),
                 StatusText(report) + "\n" + text);
    return false;
  }
  return PlansAreSound(*report) && FrontierIsConvex(report->graph);
}

}  // namespace weir::fuzz
