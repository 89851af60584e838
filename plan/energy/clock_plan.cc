// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/clock_plan.h"

#include <algorithm>
#include <limits>

namespace weir::plan {
namespace {

// Choices that add more energy than the hull, relative to what the clocks of
// the pass change, are left out: more than each of these in turn.
constexpr double kAnyExcess = std::numeric_limits<double>::infinity();
constexpr double kMostExcess[] = {kAnyExcess, 0, 3e-3};

// Returns the longest choice within the time and the excess. The first one if
// none is.
int ChoiceWithin(const DurationCurve& curve, Ticks time, double most_excess) {
  const auto after =
      std::upper_bound(curve.choices.begin(), curve.choices.end(), time,
                       [](Ticks limit, const ClockChoice& choice) {
                         return limit < choice.ticks;
                       });
  int choice = std::max(static_cast<int>(after - curve.choices.begin()) - 1, 0);
  if (most_excess == kAnyExcess) return choice;
  const double most_joules =
      most_excess * (curve.joules.front() - curve.joules.back());
  while (choice > 0 && curve.ExcessOf(choice) > most_joules) --choice;
  return choice;
}

// Chooses in order of dependencies, with `latest` times of events.
std::vector<int> ChooseInOrder(const PassGraph& graph,
                               const std::vector<Ticks>& latest,
                               double most_excess = kAnyExcess) {
  std::vector<int> chosen(graph.passes.size());
  std::vector<Ticks> times(graph.num_events, 0);
  for (const int event : graph.order) {
    for (const int i : graph.leaving[event]) {
      const PassArc& arc = graph.arcs[i];
      Ticks duration = 0;
      if (arc.pass >= 0) {
        const DurationCurve& curve = graph.CurveOfPass(arc.pass);
        const int choice =
            ChoiceWithin(curve, latest[arc.to] - times[event], most_excess);
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

// Chooses within the latest times of events, and gives passes what is left
// until `end`.
ClockPlan PlanWithin(const PassGraph& graph, const std::vector<Ticks>& latest,
                     Ticks end, double most_excess) {
  std::vector<int> chosen = ChooseInOrder(graph, latest, most_excess);
  // Each round uses what the last one left, and never chooses shorter
  // durations, because those of the last round fit.
  constexpr int kMaxRounds = 10;
  for (int round = 0; round < kMaxRounds; ++round) {
    std::vector<int> next = ChooseInOrder(
        graph, LatestTimes(graph, DurationsOf(graph, chosen), end));
    if (next == chosen) break;
    chosen = std::move(next);
  }
  std::vector<ClockChoice> choices;
  for (size_t pass = 0; pass < chosen.size(); ++pass) {
    choices.push_back(
        graph.CurveOfPass(static_cast<int>(pass)).choices[chosen[pass]]);
  }
  ClockPlan plan = PlanOf(graph, choices);
  plan.choices = std::move(chosen);
  return plan;
}

ClockPlan BestWithin(const PassGraph& graph, const std::vector<Ticks>& latest,
                     Ticks end) {
  ClockPlan best;
  for (const double excess : kMostExcess) {
    ClockPlan plan = PlanWithin(graph, latest, end, excess);
    if (best.clocks.empty() || plan.added_joules < best.added_joules) {
      best = std::move(plan);
    }
  }
  return best;
}

}  // namespace

ClockPlan ChooseClocks(const PassGraph& graph,
                       const std::vector<Ticks>& times) {
  return BestWithin(graph, times, times[graph.sink]);
}

ClockPlan JoinPlans(const PassGraph& graph, const ClockPlan& slow,
                    const ClockPlan& fast, Ticks end) {
  const std::vector<Ticks> slow_durations = DurationsOf(graph, slow.choices);
  const std::vector<Ticks> fast_durations = DurationsOf(graph, fast.choices);
  // The earlier, and the later, of two times of each event leave every pass at
  // least one of its two durations.
  std::vector<Ticks> slow_first = graph.EarliestTimes(slow_durations);
  std::vector<Ticks> fast_first = graph.EarliestTimes(fast_durations);
  const std::vector<Ticks> fast_last = LatestTimes(graph, fast_durations, end);
  const std::vector<Ticks> slow_last = LatestTimes(graph, slow_durations, end);
  for (int event = 0; event < graph.num_events; ++event) {
    slow_first[event] = std::min(slow_first[event], fast_last[event]);
    fast_first[event] = std::max(fast_first[event], slow_last[event]);
  }
  ClockPlan first = BestWithin(graph, slow_first, end);
  ClockPlan last = BestWithin(graph, fast_first, end);
  return first.added_joules <= last.added_joules ? first : last;
}

ClockPlan TopClocks(const PassGraph& graph) {
  std::vector<ClockChoice> choices;
  for (size_t pass = 0; pass < graph.passes.size(); ++pass) {
    choices.push_back(graph.CurveOfPass(static_cast<int>(pass)).top);
  }
  return PlanOf(graph, choices);
}

}  // namespace weir::plan
