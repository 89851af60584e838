// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/pass_graph.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/dependencies.h"

namespace weir::plan {
namespace {

absl::Status CheckSchedule(const schedules::Schedule& schedule,
                           const ClockProfile& profile) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("--schedule: ", schedule.name, " ", what));
  };
  if (!schedule.flush || schedule.num_batches != 1) {
    return error("has no flush, expected a schedule whose iterations end");
  }
  if (schedule.num_stages != profile.num_stages) {
    return error(absl::StrCat("has ", schedule.num_stages,
                              " stages, expected those of the profile, ",
                              profile.num_stages));
  }
  size_t num_passes = 0;
  for (const auto& actions : schedule.rank_actions) {
    num_passes += actions.size();
    for (const schedules::Action& action : actions) {
      if (!schedules::IsCompute(action.op) || action.overlaps_next) {
        return error("offloads or overlaps passes, expected neither");
      }
      if (!profile.passes.contains({action.stage, action.op})) {
        return error(absl::StrCat("has ", schedules::ToString(action),
                                  ", which the profile does not have"));
      }
    }
  }
  if (num_passes > kMaxClockedPasses) {
    return error(absl::StrCat("has ", num_passes, " passes, expected at most ",
                              kMaxClockedPasses));
  }
  return absl::OkStatus();
}

// Numbers events: 0 and 1 for the iteration, then start and end of each pass.
class GraphBuilder {
 public:
  GraphBuilder(const schedules::Schedule& schedule, const ClockProfile& profile,
               double blocking_watts, const TickScale& scale)
      : schedule_(schedule),
        profile_(profile),
        blocking_watts_(blocking_watts),
        scale_(scale) {}

  absl::StatusOr<PassGraph> Build() {
    graph_.num_ranks = schedule_.num_ranks;
    graph_.source = 0;
    graph_.sink = 1;
    AddPasses();
    AddDependencies();
    graph_.num_events = 2 + 2 * static_cast<int>(graph_.passes.size());
    if (!SortEvents()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--schedule: ", schedule_.name, " deadlocks, see schedule lint"));
    }
    return std::move(graph_);
  }

 private:
  static int Start(int pass) { return 2 + 2 * pass; }
  static int End(int pass) { return 3 + 2 * pass; }

  int CurveFor(const schedules::Action& action) {
    const auto key =
        std::make_tuple(action.stage, action.op, action.num_microbatches);
    const auto [found, is_new] =
        curve_of_.try_emplace(key, static_cast<int>(graph_.curves.size()));
    if (is_new) {
      std::vector<ClockPoint> points =
          profile_.passes.at({action.stage, action.op});
      for (ClockPoint& point : points) {
        point.seconds *= action.num_microbatches;
        point.joules *= action.num_microbatches;
      }
      graph_.curves.push_back(CurveOf(points, blocking_watts_, scale_));
    }
    return found->second;
  }

  void AddPasses() {
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      first_.push_back(static_cast<int>(graph_.passes.size()));
      for (const schedules::Action& action : schedule_.rank_actions[rank]) {
        const int pass = static_cast<int>(graph_.passes.size());
        graph_.passes.push_back({rank, action, CurveFor(action)});
        graph_.arcs.push_back({Start(pass), End(pass), pass});
      }
    }
  }

  void AddDependencies() {
    const schedules::Dependencies dependencies(schedule_);
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      const auto& actions = schedule_.rank_actions[rank];
      int before = graph_.source;
      for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
        const int pass = first_[rank] + i;
        graph_.arcs.push_back({before, Start(pass)});
        for (const schedules::Place place :
             dependencies.Awaited(actions[i], {rank, i})) {
          graph_.arcs.push_back(
              {End(first_[place.rank] + place.position), Start(pass)});
        }
        before = End(pass);
      }
      graph_.arcs.push_back({before, graph_.sink});
    }
  }

  bool SortEvents() {
    graph_.leaving.resize(graph_.num_events);
    std::vector<int> awaited(graph_.num_events);
    for (int arc = 0; arc < static_cast<int>(graph_.arcs.size()); ++arc) {
      graph_.leaving[graph_.arcs[arc].from].push_back(arc);
      ++awaited[graph_.arcs[arc].to];
    }
    graph_.order = {graph_.source};
    for (size_t i = 0; i < graph_.order.size(); ++i) {
      for (const int arc : graph_.leaving[graph_.order[i]]) {
        const int to = graph_.arcs[arc].to;
        if (--awaited[to] == 0) graph_.order.push_back(to);
      }
    }
    return static_cast<int>(graph_.order.size()) == graph_.num_events;
  }

  const schedules::Schedule& schedule_;
  const ClockProfile& profile_;
  double blocking_watts_;
  const TickScale& scale_;
  PassGraph graph_;
  std::vector<int> first_;  // [rank]: its first pass
  std::map<std::tuple<int, schedules::Op, int>, int> curve_of_;
};

}  // namespace

std::vector<Ticks> PassGraph::EarliestTimes(
    const std::vector<Ticks>& durations) const {
  std::vector<Ticks> times(num_events, 0);
  for (const int event : order) {
    for (const int arc : leaving[event]) {
      const Ticks duration = arcs[arc].pass < 0 ? 0 : durations[arcs[arc].pass];
      Ticks& time = times[arcs[arc].to];
      time = std::max(time, times[event] + duration);
    }
  }
  return times;
}

absl::StatusOr<PassGraph> GraphOfPasses(const schedules::Schedule& schedule,
                                        const ClockProfile& profile,
                                        double blocking_watts,
                                        const TickScale& scale) {
  RETURN_IF_ERROR(CheckSchedule(schedule, profile));
  ASSIGN_OR_RETURN(
      PassGraph graph,
      GraphBuilder(schedule, profile, blocking_watts, scale).Build());
  double steepest = 0;
  for (const DurationCurve& curve : graph.curves) {
    steepest = std::max(steepest, curve.steepest_watts);
  }
  TickScale own = scale;
  const double most = kMostSlopes / static_cast<double>(std::max<size_t>(
                                        graph.passes.size(), 1));
  while (steepest * own.slopes_per_watt > most) own.slopes_per_watt /= 10;
  if (own.slopes_per_watt != scale.slopes_per_watt) {
    ASSIGN_OR_RETURN(
        graph, GraphBuilder(schedule, profile, blocking_watts, own).Build());
  }
  graph.slopes_per_watt = own.slopes_per_watt;
  return graph;
}

}  // namespace weir::plan
