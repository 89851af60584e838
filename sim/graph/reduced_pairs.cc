// SPDX-License-Identifier: Apache-2.0
// Pairs of colors, for a graph of representatives.
#include <algorithm>
#include <utility>

#include "sim/graph/flow_pairs.h"
#include "sim/graph/symmetry.h"

namespace weir::sim {
namespace {

class ReducedPairs : public FlowPairs {
 public:
  ReducedPairs(const Symmetry& symmetry, bool hops_take_latency,
               TaskGraph* tasks)
      : FlowPairs(tasks),
        symmetry_(symmetry),
        hops_take_latency_(hops_take_latency) {}

  int32_t OfSend(int, int, double latency_seconds,
                 const InstanceRole& role) override {
    return OfColor(symmetry_.ColorOf(role), latency_seconds);
  }
  int32_t OfHost(int, bool, const InstanceRole& role) override;
  Group OfGroup(const std::vector<int>&, const InstanceRole& role) override;
  std::optional<double> SecondsPerByteAlone(int32_t pair) const override;
  // One flow represents all hops already, and groups have no hop sets.
  void AddCollective(int32_t, int32_t) override {}
  void MergeHops() override {}
  std::vector<Slowdowns::Touch> Touches() const override;

 private:
  int32_t OfColor(int32_t color, double latency_seconds);

  const Symmetry& symmetry_;
  const bool hops_take_latency_;
  std::vector<int32_t> pair_colors_;  // [pair]
};

// Each reduced pair has two hosts of its own.
int32_t ReducedPairs::OfColor(int32_t color, double latency_seconds) {
  const auto [pair, added] = Find(color, 0, HostOf(latency_seconds));
  if (added) {
    scenarios::Route route = symmetry_.color(color).route;
    route.latency_seconds = latency_seconds;
    tasks_->pairs.push_back({2 * pair, 2 * pair + 1, std::move(route)});
    pair_colors_.push_back(color);
  }
  return pair;
}

int32_t ReducedPairs::OfHost(int, bool, const InstanceRole& role) {
  const int32_t color = symmetry_.ColorOf(role);
  if (color < 0) return -1;
  return OfColor(color, symmetry_.color(color).route.latency_seconds);
}

Group ReducedPairs::OfGroup(const std::vector<int>&, const InstanceRole& role) {
  Group group = symmetry_.GroupOf(role);
  for (std::vector<int32_t>* hops : {&group.intra_hops, &group.inter_hops}) {
    for (int32_t& hop : *hops) {
      const double seconds = symmetry_.color(hop).route.latency_seconds;
      hop = OfColor(hop, hops_take_latency_ ? seconds : 0);
    }
  }
  return group;
}

std::optional<double> ReducedPairs::SecondsPerByteAlone(int32_t pair) const {
  if (!symmetry_.color(pair_colors_[pair]).has_own_links) return std::nullopt;
  const scenarios::Route& route = tasks_->pairs[pair].route;
  double seconds_per_byte = 0;
  for (size_t i = 0, next = 0; i < route.links.size(); i = next) {
    while (next < route.links.size() && route.links[next] == route.links[i]) {
      ++next;  // a link that is named k times
    }
    seconds_per_byte =
        std::max(seconds_per_byte,
                 static_cast<double>(next - i) /
                     symmetry_.links()[route.links[i]].bytes_per_second);
  }
  return seconds_per_byte;
}

std::vector<Slowdowns::Touch> ReducedPairs::Touches() const {
  std::vector<Slowdowns::Touch> touches;
  for (int32_t color : pair_colors_) {
    touches.push_back(symmetry_.color(color).touch);
  }
  return touches;
}

}  // namespace

std::unique_ptr<FlowPairs> MakeReducedPairs(const Symmetry& symmetry,
                                            bool hops_take_latency,
                                            TaskGraph* tasks) {
  return std::make_unique<ReducedPairs>(symmetry, hops_take_latency, tasks);
}

}  // namespace weir::sim
