// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/clock_plan.h"

#include <algorithm>
#include <limits>

namespace weir::plan {
namespace {

// Returns the longest choice within the time. The first one if none is.
int ChoiceWithin(const DurationCurve& curve, Ticks time) {
  const auto after =
      std::upper_bound(curve.choices.begin(), curve.choices.end(), time,
                       [](Ticks limit, const ClockChoice& choice) {
                         return limit < choice.ticks;
                       });
  return std::max(static_cast<int>(after - curve.choices.begin()) - 1, 0);
}

// Chooses in order of dependencies, with `latest` times of events.
std::vector<int> ChooseInOrder(const PassGraph& graph,
                               const std::vector<Ticks>& latest) {
  std::vector<int> chosen(graph.passes.size());
  std::vector<Ticks> times(graph.num_events, 0);
  for (const int event : graph.order) {
    for (const int i : graph.leaving[event]) {
      const PassArc& arc = graph.arcs[i];
      Ticks duration = 0;
      if (arc.pass >= 0) {
        const DurationCurve& curve = graph.CurveOfPass(arc.pass);
        const int choice = ChoiceWithin(curve, latest[arc.to] - times[event]);
        chosen[arc.pass] = choice;
        duration = curve.choices[choice].ticks;
      }
      times[arc.to] = std::max(times[arc.to], times[event] + duration);
    }
  }
  return chosen;
}

std::vector<Ticks> DurationsOf(const PassGraph& graph,
                               const std::vector<int>& chosen) {
  std::vector<Ticks> durations;
  for (size_t pass = 0; pass < chosen.size(); ++pass) {
    durations.push_back(
        graph.CurveOfPass(static_cast<int>(pass)).choices[chosen[pass]].ticks);
  }
  return durations;
}

// Returns the latest times of events with which the iteration ends at `end`.
std::vector<Ticks> LatestTimes(const PassGraph& graph,
                               const std::vector<Ticks>& durations, Ticks end) {
  std::vector<Ticks> latest(graph.num_events, end);
  for (auto event = graph.order.rbegin(); event != graph.order.rend();
       ++event) {
    for (const int i : graph.leaving[*event]) {
      const PassArc& arc = graph.arcs[i];
      const Ticks duration = arc.pass < 0 ? 0 : durations[arc.pass];
      latest[*event] = std::min(latest[*event], latest[arc.to] - duration);
    }
  }
  return latest;
}

// Returns the length of the iteration with the measured durations.
double MeasuredSeconds(const PassGraph& graph,
                       const std::vector<ClockPoint>& clocks) {
  std::vector<double> times(graph.num_events, 0);
  for (const int event : graph.order) {
    for (const int i : graph.leaving[event]) {
      const PassArc& arc = graph.arcs[i];
      const double seconds = arc.pass < 0 ? 0 : clocks[arc.pass].seconds;
      times[arc.to] = std::max(times[arc.to], times[event] + seconds);
    }
  }
  return times[graph.sink];
}

ClockPlan PlanOf(const PassGraph& graph,
                 const std::vector<ClockChoice>& choices) {
  ClockPlan plan;
  std::vector<Ticks> durations;
  for (const ClockChoice& choice : choices) {
    plan.clocks.push_back(choice.point);
    durations.push_back(choice.ticks);
    plan.added_joules += choice.added_joules;
    plan.busy_seconds += choice.point.seconds;
    plan.busy_joules += choice.point.joules;
  }
  plan.ticks = graph.EarliestTimes(durations)[graph.sink];
  plan.seconds = MeasuredSeconds(graph, plan.clocks);
  return plan;
}

}  // namespace

ClockPlan ChooseClocks(const PassGraph& graph,
                       const std::vector<Ticks>& times) {
  std::vector<int> chosen = ChooseInOrder(graph, times);
  // Each round uses what the last one left, and never chooses shorter
  // durations, because those of the last round fit.
  constexpr int kMaxRounds = 10;
  for (int round = 0; round < kMaxRounds; ++round) {
    std::vector<int> next = ChooseInOrder(
        graph,
        LatestTimes(graph, DurationsOf(graph, chosen), times[graph.sink]));
    if (next == chosen) break;
    chosen = std::move(next);
  }
  std::vector<ClockChoice> choices;
  for (size_t pass = 0; pass < chosen.size(); ++pass) {
    choices.push_back(
        graph.CurveOfPass(static_cast<int>(pass)).choices[chosen[pass]]);
  }
  return PlanOf(graph, choices);
}

ClockPlan TopClocks(const PassGraph& graph) {
  std::vector<ClockChoice> choices;
  for (size_t pass = 0; pass < graph.passes.size(); ++pass) {
    choices.push_back(graph.CurveOfPass(static_cast<int>(pass)).top);
  }
  return PlanOf(graph, choices);
}

}  // namespace weir::plan
