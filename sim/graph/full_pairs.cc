// SPDX-License-Identifier: Apache-2.0
// Pairs of GPUs, for a graph with all GPUs.
#include <algorithm>
#include <utility>

#include "sim/graph/flow_pairs.h"

namespace weir::sim {
namespace {

// The seconds that links need for one byte over each of several routes.
class RouteLoads {
 public:
  explicit RouteLoads(const scenarios::Network& network) : network_(network) {}

  void Add(const scenarios::Route& route) {
    for (int32_t link : route.links) {
      double& seconds = seconds_[link];
      seconds += 1 / network_.links()[link].bytes_per_second;
      largest_ = std::max(largest_, seconds);
    }
  }
  void Add(const RouteLoads& other) {
    for (const auto& [link, other_seconds] : other.seconds_) {
      double& seconds = seconds_[link];
      seconds += other_seconds;
      largest_ = std::max(largest_, seconds);
    }
  }
  bool MeetsAny(const RouteLoads& other) const {
    return std::any_of(seconds_.begin(), seconds_.end(), [&](const auto& load) {
      return other.seconds_.contains(load.first);
    });
  }
  double largest() const { return largest_; }

 private:
  const scenarios::Network& network_;
  absl::flat_hash_map<int32_t, double> seconds_;
  double largest_ = 0;
};

class FullPairs : public FlowPairs {
 public:
  FullPairs(const scenarios::Network& network, bool hops_take_latency,
            RouteCache* routes, TaskGraph* tasks)
      : FlowPairs(tasks),
        network_(network),
        hops_take_latency_(hops_take_latency),
        routes_(*routes) {}

  int32_t OfSend(int from, int to, double latency_seconds,
                 const InstanceRole&) override;
  int32_t OfHost(int gpu, bool to_host, const InstanceRole&) override;
  Group OfGroup(const std::vector<int>& gpus, const InstanceRole&) override;
  // Other flows are not known yet when a group is made.
  std::optional<double> SecondsPerByteAlone(int32_t) const override {
    return std::nullopt;
  }
  void AddCollective(int32_t hop_set, int32_t first_flow) override {
    hop_sets_[hop_set].first_flows.push_back(first_flow);
  }
  void MergeHops() override;
  std::vector<Slowdowns::Touch> Touches() const override;

 private:
  // The hops of a group in a node, and the first flow of each of its
  // collectives.
  struct HopSet {
    std::vector<int32_t> hops;
    std::vector<int32_t> first_flows;
  };
  bool CarryAlike(const HopSet& set, const std::vector<int64_t>& pair_flows,
                  const std::vector<int32_t>& link_pairs) const;
  // Returns the largest time that a link needs for one byte over every hop of
  // these rings.
  double SecondsPerByteOf(const std::vector<scenarios::Ring>& rings);
  void SetLinks(const std::vector<int>& gpus, Group* group);
  void SetWires(Group* group) const;

  const scenarios::Network& network_;
  const bool hops_take_latency_;
  RouteCache& routes_;
  std::vector<HopSet> hop_sets_;
  std::vector<size_t> merged_hop_sets_;  // indices into hop_sets_
  absl::flat_hash_map<std::vector<int32_t>, int32_t> hop_set_index_;
};

int32_t FullPairs::OfSend(int from, int to, double latency_seconds,
                          const InstanceRole&) {
  const int host = HostOf(latency_seconds);
  const auto [pair, added] = Find(from, to, host);
  if (added) {
    scenarios::Route route = routes_.Of(from, to);
    route.latency_seconds = latency_seconds;
    // Numbers from num_gpus on are the memory of the GPUs' hosts.
    const int first = host == 0 ? 0 : (host + 1) * network_.num_gpus();
    tasks_->pairs.push_back({first + from, first + to, std::move(route)});
  }
  return pair;
}

int32_t FullPairs::OfHost(int gpu, bool to_host, const InstanceRole&) {
  scenarios::Route route =
      to_host ? network_.RouteToHost(gpu) : network_.RouteFromHost(gpu);
  if (route.links.empty()) return -1;
  // Each GPU has its own number for its host.
  const int host = network_.num_gpus() + gpu;
  const int from = to_host ? gpu : host, to = to_host ? host : gpu;
  const auto [pair, added] = Find(from, to, 0);
  if (added) tasks_->pairs.push_back({from, to, std::move(route)});
  return pair;
}

Group FullPairs::OfGroup(const std::vector<int>& gpus, const InstanceRole&) {
  Group group;
  RouteLoads intra(network_), inter(network_);
  for (const scenarios::Ring& ring : network_.RingsOver(gpus)) {
    ++group.num_rings;
    for (size_t i = 0; i < ring.gpus.size(); ++i) {
      const int from = ring.gpus[i];
      const int to = ring.gpus[(i + 1) % ring.gpus.size()];
      const scenarios::Route& route = routes_.Of(from, to);
      const bool inside = network_.NodeOf(from) == network_.NodeOf(to);
      (inside ? intra : inter).Add(route);
      group.hop_seconds = std::max(group.hop_seconds, route.latency_seconds);
      (inside ? group.intra_hops : group.inter_hops)
          .push_back(OfSend(
              from, to, hops_take_latency_ ? route.latency_seconds : 0, {}));
    }
  }
  group.intra_seconds_per_byte = intra.largest();
  group.inter_seconds_per_byte = inter.largest();
  SetLinks(gpus, &group);
  if (intra.MeetsAny(inter)) {
    const double apart = std::max(intra.largest(), inter.largest());
    intra.Add(inter);
    group.shares_links = true;
    group.intra_seconds_per_byte = group.inter_seconds_per_byte =
        intra.largest();
    group.links.intra_bytes_per_second *= apart / intra.largest();
    group.links.inter_bytes_per_second *= apart / intra.largest();
  }
  SetWires(&group);
  if (group.inter_hops.empty() && !group.intra_hops.empty()) {
    const auto [at, added] = hop_set_index_.try_emplace(
        group.intra_hops, static_cast<int32_t>(hop_sets_.size()));
    if (added) hop_sets_.push_back({group.intra_hops, {}});
    group.hop_set = at->second;
  }
  return group;
}

double FullPairs::SecondsPerByteOf(const std::vector<scenarios::Ring>& rings) {
  RouteLoads loads(network_);
  for (const scenarios::Ring& ring : rings) {
    for (size_t i = 0; i < ring.gpus.size(); ++i) {
      loads.Add(
          routes_.Of(ring.gpus[i], ring.gpus[(i + 1) % ring.gpus.size()]));
    }
  }
  return loads.largest();
}

void FullPairs::SetLinks(const std::vector<int>& gpus, Group* group) {
  calibrate::CollectiveGroup& links = group->links;
  links.num_ranks = static_cast<int>(gpus.size());
  absl::flat_hash_map<int, std::vector<int>> in_node;
  for (int gpu : gpus) in_node[network_.NodeOf(gpu)].push_back(gpu);
  const std::vector<int>& inside = in_node[network_.NodeOf(gpus.front())];
  const bool even = std::all_of(
      in_node.begin(), in_node.end(),
      [&](const auto& node) { return node.second.size() == inside.size(); });
  links.ranks_per_node = even ? static_cast<int>(inside.size()) : 1;
  if (even && inside.size() > 1) {
    // Between nodes a ring leaves out one of a node's hops: the links of a GPU
    // are those of rings within the node.
    const std::vector<scenarios::Ring> rings = network_.RingsOver(inside);
    const double seconds = SecondsPerByteOf(rings);
    if (seconds > 0) {
      links.intra_bytes_per_second =
          static_cast<double>(rings.size()) / seconds;
    }
  }
  if (group->inter_seconds_per_byte > 0) {
    // Each ring leaves a node once.
    links.inter_bytes_per_second =
        group->num_rings / group->inter_seconds_per_byte / links.ranks_per_node;
  }
}

// From the hops: a mesh has pairs that only PCIe joins, but rings may avoid
// them.
void FullPairs::SetWires(Group* group) const {
  calibrate::CollectiveGroup& links = group->links;
  if (links.ranks_per_node < 2) return;
  links.nvls = true;
  for (int32_t hop : group->intra_hops) {
    const GpuPair& pair = tasks_->pairs[hop];
    const scenarios::Wire wire = network_.WireBetween(
        pair.from % network_.num_gpus(), pair.to % network_.num_gpus());
    links.pci |= wire == scenarios::Wire::kPcie;
    links.nvls &= wire == scenarios::Wire::kNvSwitch;
  }
}

bool FullPairs::CarryAlike(const HopSet& set,
                           const std::vector<int64_t>& pair_flows,
                           const std::vector<int32_t>& link_pairs) const {
  const scenarios::Route& first = tasks_->pairs[set.hops[0]].route;
  const double seconds_per_byte = SecondsPerByte(network_, first);
  return std::all_of(set.hops.begin(), set.hops.end(), [&](int32_t hop) {
    const scenarios::Route& route = tasks_->pairs[hop].route;
    return pair_flows[hop] == std::ssize(set.first_flows) &&
           route.latency_seconds == first.latency_seconds &&
           SecondsPerByte(network_, route) == seconds_per_byte &&
           std::all_of(route.links.begin(), route.links.end(),
                       [&](int32_t link) { return link_pairs[link] == 1; });
  });
}

void FullPairs::MergeHops() {
  std::vector<int64_t> pair_flows(tasks_->pairs.size());
  for (int32_t task = 0; task < tasks_->num_tasks(); ++task) {
    if (!tasks_->is_timer(task)) ++pair_flows[tasks_->pair(task)];
  }
  std::vector<int32_t> link_pairs(network_.links().size());
  for (size_t pair = 0; pair < pair_flows.size(); ++pair) {
    if (pair_flows[pair] == 0) continue;
    for (int32_t link : tasks_->pairs[pair].route.links) ++link_pairs[link];
  }
  for (size_t s = 0; s < hop_sets_.size(); ++s) {
    const HopSet& set = hop_sets_[s];
    if (!CarryAlike(set, pair_flows, link_pairs)) continue;
    merged_hop_sets_.push_back(s);
    for (int32_t first : set.first_flows) {
      for (int32_t i = 1; i < std::ssize(set.hops); ++i) {
        tasks_->DropFlow(first + i);
      }
    }
  }
}

std::vector<Slowdowns::Touch> FullPairs::Touches() const {
  const int num_gpus = network_.num_gpus();
  std::vector<Slowdowns::Touch> touches;
  for (const GpuPair& pair : tasks_->pairs) {
    Slowdowns::Touch& touch = touches.emplace_back();
    for (int host : {pair.from, pair.to}) {
      if (host / num_gpus == 1) {
        touch.mover = Mover::kCopies;  // the other end is the host's memory
      } else {
        touch.gpus.push_back(host % num_gpus);
      }
    }
  }
  // The remaining hop represents all hops, so it touches all their GPUs.
  for (size_t s : merged_hop_sets_) {
    std::vector<int32_t>& gpus = touches[hop_sets_[s].hops[0]].gpus;
    for (int32_t hop : hop_sets_[s].hops) {
      for (int host : {tasks_->pairs[hop].from, tasks_->pairs[hop].to}) {
        gpus.push_back(host % num_gpus);
      }
    }
    std::sort(gpus.begin(), gpus.end());
    gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  }
  return touches;
}

}  // namespace

std::unique_ptr<FlowPairs> MakeFullPairs(const scenarios::Network& network,
                                         bool hops_take_latency,
                                         RouteCache* routes, TaskGraph* tasks) {
  return std::make_unique<FullPairs>(network, hops_take_latency, routes, tasks);
}

}  // namespace weir::sim
