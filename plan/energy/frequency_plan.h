// SPDX-License-Identifier: Apache-2.0
// Plans of clocks for a schedule: the baseline at the highest clocks, the
// fastest plan, plans for deadlines and for stragglers.
#ifndef WEIR_PLAN_ENERGY_FREQUENCY_PLAN_H_
#define WEIR_PLAN_ENERGY_FREQUENCY_PLAN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/energy/clock_plan.h"
#include "schedules/schedule.h"

namespace weir::plan {

struct FrequencyRequest {
  std::string name;  // of the profile, for views
  ClockProfile profile;
  schedules::Schedule schedule;
  double blocking_watts = 0;  // of all GPUs of a stage while they wait
  double unit_seconds = 0;    // see TickScale
  // Deadlines in seconds; empty: num_deadlines evenly spaced ones from the
  // length with the least energy to the shortest one.
  std::vector<double> deadlines;
  int num_deadlines = 20;
  // Slower pipelines of other replicas, relative to the baseline.
  std::vector<double> stragglers;
  // Most mean watts of all GPUs of a stage over the iteration; 0: no limit.
  double most_watts = 0;
};

// A point of the frontier.
struct FrequencyPoint {
  double deadline_seconds = 0;
  // The least energy within the deadline if durations between two clocks were
  // possible; a lower bound for plans with one clock per pass.
  double lower_bound_joules = 0;
  // One clock per pass, within the deadline. A longer deadline never has more
  // joules.
  double seconds = 0, joules = 0;
  // The same with measured instead of rounded durations.
  double measured_seconds = 0, measured_joules = 0;
  ClockPlan plan;
};

// An iteration that waits for another pipeline.
struct StragglerPoint {
  double factor = 1;
  double iteration_seconds = 0;
  double baseline_joules = 0;
  // The plan with the least energy of passes within iteration_seconds; its
  // lower bound is for this length, since a shorter one does not save waiting.
  FrequencyPoint point;
  double joules = 0;  // in iteration_seconds
};

struct FrequencyReport {
  FrequencyRequest request;
  PassGraph graph;
  // All passes at their highest clocks.
  double baseline_seconds = 0, baseline_joules = 0;
  double measured_baseline_seconds = 0, measured_baseline_joules = 0;
  FrequencyPoint fastest;  // shortest possible iteration
  FrequencyPoint least;    // least energy of all
  // By descending deadline. Those longer than the plan with the least energy
  // have that plan; those shorter than the shortest iteration are left out.
  // Their plans contain clocks only if there is a single deadline.
  std::vector<FrequencyPoint> points;
  std::vector<double> infeasible_deadlines;
  std::vector<StragglerPoint> stragglers;
  // With most_watts: the fastest plan that was found within it, and the time
  // below which no plan is. Absent: every plan takes more.
  std::optional<FrequencyPoint> capped;
  double capped_bound_seconds = 0;
  int num_pieces = 0;  // linear pieces of the frontier
};

// Plans the clocks of all passes. Calls `progress` from time to time with a
// completed fraction in [0, 1], estimated: of the search for the frontier, and
// then, again from 0, of the plans for the deadlines. Returns InvalidArgument
// with all problems of the request, and the errors of GraphOfPasses and
// WalkFrontier.
absl::StatusOr<FrequencyReport> PlanFrequencies(
    const FrequencyRequest& request,
    const std::function<void(double)>& progress = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_FREQUENCY_PLAN_H_
