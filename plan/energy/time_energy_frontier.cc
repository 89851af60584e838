// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/time_energy_frontier.h"

#include <algorithm>
#include <limits>

#include "plan/energy/residual_network.h"

namespace weir::plan {
namespace {

// Least and largest flow through an arc.
struct FlowBounds {
  Slope low = 0, high = 0;
};

FlowBounds BoundsOfPass(const DurationCurve& curve, Ticks duration) {
  if (duration > curve.longest()) return {};
  const auto corner =
      std::lower_bound(curve.ticks.begin(), curve.ticks.end(), duration);
  const size_t i = corner - curve.ticks.begin();
  if (*corner != duration) return {curve.slopes[i - 1], curve.slopes[i - 1]};
  return {i + 1 < curve.ticks.size() ? curve.slopes[i] : 0,
          i == 0 ? ResidualNetwork::kUnlimited : curve.slopes[i - 1]};
}

class FrontierWalk {
 public:
  explicit FrontierWalk(const PassGraph& graph)
      : graph_(graph),
        network_(graph.num_events, graph.source, graph.sink),
        flow_(graph.arcs.size()) {
    for (const PassArc& arc : graph.arcs) network_.AddArc(arc.from, arc.to);
    std::vector<Ticks> durations;
    for (int pass = 0; pass < static_cast<int>(graph.passes.size()); ++pass) {
      durations.push_back(graph.CurveOfPass(pass).longest());
    }
    times_ = graph.EarliestTimes(durations);
  }

  absl::Status Walk(const std::function<bool(const FrontierPiece&)>& visit) {
    Slope slope = 0;
    while (true) {
      if (!SetCapacities()) {
        return absl::InternalError(
            "the flow of a time-energy frontier is not within its bounds");
      }
      const Slope more = network_.MaxFlow();
      if (more >= ResidualNetwork::kUnlimited / 2) return absl::OkStatus();
      slope += more;
      for (int arc = 0; arc < static_cast<int>(flow_.size()); ++arc) {
        flow_[arc] += network_.FlowOf(arc);
      }
      moves_ = network_.SinkSide();
      const Ticks step = LargestStep();
      if (step <= 0) {
        return absl::InternalError("the step of a time-energy frontier is 0");
      }
      const Ticks end = times_[graph_.sink];
      if (!visit({end, end - step, slope, &times_, &moves_})) {
        return absl::OkStatus();
      }
      for (int event = 0; event < graph_.num_events; ++event) {
        if (moves_[event]) times_[event] -= step;
      }
    }
  }

 private:
  Ticks Duration(const PassArc& arc) const {
    return times_[arc.to] - times_[arc.from];
  }

  // Returns false if the flow is not within its bounds.
  bool SetCapacities() {
    for (int i = 0; i < static_cast<int>(flow_.size()); ++i) {
      const PassArc& arc = graph_.arcs[i];
      const Ticks duration = Duration(arc);
      const FlowBounds bounds =
          arc.pass >= 0
              ? BoundsOfPass(graph_.CurveOfPass(arc.pass), duration)
              : FlowBounds{0, duration == 0 ? ResidualNetwork::kUnlimited : 0};
      if (flow_[i] < bounds.low || flow_[i] > bounds.high) return false;
      network_.SetCapacity(i, bounds.high - flow_[i], flow_[i] - bounds.low);
    }
    return true;
  }

  // Returns how far events can move until a slope changes or an arc becomes
  // critical.
  Ticks LargestStep() const {
    Ticks step = std::numeric_limits<Ticks>::max();
    for (const PassArc& arc : graph_.arcs) {
      if (moves_[arc.from] == moves_[arc.to]) continue;
      const Ticks duration = Duration(arc);
      const bool shorter = moves_[arc.to];
      if (arc.pass < 0) {
        if (shorter) step = std::min(step, duration);
        continue;
      }
      const DurationCurve& curve = graph_.CurveOfPass(arc.pass);
      const auto& ticks = curve.ticks;
      if (shorter && duration > curve.longest()) {
        step = std::min(step, duration - curve.longest());
      } else if (shorter) {
        const auto corner =
            std::lower_bound(ticks.begin(), ticks.end(), duration);
        if (corner == ticks.begin()) return 0;
        step = std::min(step, duration - *(corner - 1));
      } else if (duration < curve.longest()) {
        step = std::min(
            step,
            *std::upper_bound(ticks.begin(), ticks.end(), duration) - duration);
      }
    }
    return step == std::numeric_limits<Ticks>::max() ? 0 : step;
  }

  const PassGraph& graph_;
  ResidualNetwork network_;
  std::vector<Slope> flow_;   // by arc
  std::vector<Ticks> times_;  // by event
  std::vector<char> moves_;   // by event
};

}  // namespace

std::vector<Ticks> FrontierPiece::TimesAt(Ticks end) const {
  std::vector<Ticks> at = *times;
  for (size_t event = 0; event < at.size(); ++event) {
    if ((*moves)[event]) at[event] -= longest - end;
  }
  return at;
}

absl::Status WalkFrontier(
    const PassGraph& graph,
    const std::function<bool(const FrontierPiece&)>& visit) {
  return FrontierWalk(graph).Walk(visit);
}

double AddedJoules(const PassGraph& graph, const std::vector<Ticks>& times) {
  double joules = 0;
  for (const PassArc& arc : graph.arcs) {
    if (arc.pass < 0) continue;
    joules +=
        graph.CurveOfPass(arc.pass).JoulesOf(times[arc.to] - times[arc.from]);
  }
  return joules;
}

}  // namespace weir::plan
