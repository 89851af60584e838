// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/communication_lowering.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibrate/pricing/link_seconds.h"
#include "sim/graph/symmetry.h"

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

double SecondsPerByte(const scenarios::Network& network,
                      const scenarios::Route& route) {
  double seconds = 0;
  for (int32_t link : route.links) {
    seconds = std::max(seconds, 1 / network.links()[link].bytes_per_second);
  }
  return seconds;
}

// An all-reduce sends its bytes around a ring twice.
double Passes(calibrate::CollectiveKind kind) {
  return kind == calibrate::CollectiveKind::kAllReduce ? 2 : 1;
}

}  // namespace

const scenarios::Route& CommunicationLowering::RouteOf(int from, int to) {
  const auto [at, added] = routes_.try_emplace({from, to});
  if (added) at->second = network_.RouteBetween(from, to);
  return at->second;
}

int32_t CommunicationLowering::PairOf(int from, int to,
                                      double latency_seconds) {
  const auto known =
      std::find(latencies_.begin(), latencies_.end(), latency_seconds);
  const int host = static_cast<int>(known - latencies_.begin());
  if (known == latencies_.end()) latencies_.push_back(latency_seconds);
  const auto [at, added] = pair_index_.try_emplace(
      {from, to, host}, static_cast<int32_t>(tasks_->pairs.size()));
  if (added) {
    scenarios::Route route = RouteOf(from, to);
    route.latency_seconds = latency_seconds;
    // Numbers from num_gpus on are the memory of the GPUs' hosts.
    const int first = host == 0 ? 0 : (host + 1) * network_.num_gpus();
    tasks_->pairs.push_back({first + from, first + to, std::move(route)});
  }
  return at->second;
}

// Each folded pair has two hosts of its own.
int32_t CommunicationLowering::ReducedPairOf(int32_t color,
                                             double latency_seconds) {
  const auto known =
      std::find(latencies_.begin(), latencies_.end(), latency_seconds);
  const int host = static_cast<int>(known - latencies_.begin());
  if (known == latencies_.end()) latencies_.push_back(latency_seconds);
  const auto pair = static_cast<int32_t>(tasks_->pairs.size());
  const auto [at, added] = pair_index_.try_emplace({color, 0, host}, pair);
  if (added) {
    scenarios::Route route = symmetry_->color(color).route;
    route.latency_seconds = latency_seconds;
    tasks_->pairs.push_back({2 * pair, 2 * pair + 1, std::move(route)});
    pair_colors_.push_back(color);
  }
  return at->second;
}

int32_t CommunicationLowering::SendPairOf(int from, int to,
                                          double latency_seconds,
                                          const InstanceRole& role) {
  return symmetry_ == nullptr
             ? PairOf(from, to, latency_seconds)
             : ReducedPairOf(symmetry_->ColorOf(role), latency_seconds);
}

int32_t CommunicationLowering::HostPairOf(int gpu, bool to_host,
                                          const InstanceRole& role) {
  if (symmetry_ != nullptr) {
    const int32_t color = symmetry_->ColorOf(role);
    return color < 0
               ? -1
               : ReducedPairOf(color,
                               symmetry_->color(color).route.latency_seconds);
  }
  scenarios::Route route =
      to_host ? network_.RouteToHost(gpu) : network_.RouteFromHost(gpu);
  if (route.links.empty()) return -1;
  // Each GPU has its own number for its host.
  const int host = network_.num_gpus() + gpu;
  const int from = to_host ? gpu : host, to = to_host ? host : gpu;
  const auto [at, added] = pair_index_.try_emplace(
      {from, to, 0}, static_cast<int32_t>(tasks_->pairs.size()));
  if (added) tasks_->pairs.push_back({from, to, std::move(route)});
  return at->second;
}

LinkClass::Distance CommunicationLowering::DistanceBetween(int from,
                                                           int to) const {
  switch (network_.WireBetween(from, to)) {
    case scenarios::Wire::kNone:
      return LinkClass::DISTANCE_UNSPECIFIED;
    case scenarios::Wire::kNvSwitch:
    case scenarios::Wire::kNvLink:
      return LinkClass::SAME_SWITCH;
    case scenarios::Wire::kPcie:
      return LinkClass::SAME_NODE;
    case scenarios::Wire::kNetwork:
      break;
  }
  return network_.SameLeaf(from, to) ? LinkClass::SAME_LEAF
                                     : LinkClass::ACROSS_SPINES;
}

SendCost CommunicationLowering::SendBetween(int from, int to, double bytes,
                                            double extra_seconds,
                                            const InstanceRole& role) {
  const scenarios::Route& route = RouteOf(from, to);
  const LinkClass::Distance distance = links_ == nullptr
                                           ? LinkClass::DISTANCE_UNSPECIFIED
                                           : DistanceBetween(from, to);
  const LinkClass* link =
      links_ == nullptr ? nullptr : calibrate::FindLink(*links_, distance);
  const double seconds_per_byte = SecondsPerByte(network_, route);
  if (link != nullptr) {
    const calibrate::LinkTime time = calibrate::LinkTimeOf(*link, bytes);
    calibrate::CollectiveGroup pair;
    pair.num_ranks = 2;
    pair.ranks_per_node = network_.NodeOf(from) == network_.NodeOf(to) ? 2 : 1;
    CountCall({calibrate::CollectiveKind::kSendReceive, bytes, 1}, pair,
              distance);
    return SendOver(
        SendPairOf(from, to, time.latency_seconds + extra_seconds, role), from,
        to, std::round(time.link_seconds / seconds_per_byte));
  }
  if (model_ == nullptr) {
    return SendOver(
        SendPairOf(from, to, route.latency_seconds + extra_seconds, role), from,
        to, bytes);
  }
  const scenarios::Wire wire = network_.WireBetween(from, to);
  calibrate::CollectiveGroup pair;
  pair.num_ranks = 2;
  pair.ranks_per_node = wire == scenarios::Wire::kNetwork ? 1 : 2;
  pair.intra_bytes_per_second = pair.inter_bytes_per_second =
      1 / seconds_per_byte;
  pair.pci = wire == scenarios::Wire::kPcie;
  const calibrate::CollectiveCost cost = calibrate::CheapestCollective(
      *model_, calibrate::CollectiveKind::kSendReceive, bytes, pair);
  CountCall({calibrate::CollectiveKind::kSendReceive, bytes, 1}, pair);
  return SendOver(
      SendPairOf(from, to, cost.latency_seconds + extra_seconds, role), from,
      to, std::round(cost.LinkSeconds() / seconds_per_byte));
}

SendCost CommunicationLowering::SendOver(int32_t pair, int from, int to,
                                         double bytes) {
  sends_.resize(tasks_->pairs.size(), {-1, -1});
  sends_[pair] = {from, to};
  return {pair, bytes};
}

int32_t CommunicationLowering::CommunicatorOf(std::vector<int> gpus,
                                              const Group& group) {
  std::sort(gpus.begin(), gpus.end());
  const auto [known, is_new] = communicator_index_.try_emplace(
      std::move(gpus), static_cast<int32_t>(communicators_.size()));
  if (is_new) {
    const bool nvls = group.links.nvls && model_ != nullptr &&
                      model_->has_nvls_base_seconds();
    communicators_.push_back({!group.inter_hops.empty(), nvls});
  }
  return known->second;
}

Group CommunicationLowering::ReducedGroupOf(const InstanceRole& role) {
  Group group = symmetry_->GroupOf(role);
  for (std::vector<int32_t>* hops : {&group.intra_hops, &group.inter_hops}) {
    for (int32_t& hop : *hops) {
      const double seconds = symmetry_->color(hop).route.latency_seconds;
      hop = ReducedPairOf(hop, model_ == nullptr ? seconds : 0);
    }
  }
  return group;
}

Group CommunicationLowering::GroupOf(const std::vector<int>& gpus,
                                     const InstanceRole& role) {
  if (symmetry_ != nullptr) {
    Group group = ReducedGroupOf(role);
    group.communicator = CommunicatorOf(gpus, group);
    return group;
  }
  Group group;
  RouteLoads intra(network_), inter(network_);
  for (const scenarios::Ring& ring : network_.RingsOver(gpus)) {
    ++group.num_rings;
    for (size_t i = 0; i < ring.gpus.size(); ++i) {
      const int from = ring.gpus[i];
      const int to = ring.gpus[(i + 1) % ring.gpus.size()];
      const scenarios::Route& route = RouteOf(from, to);
      const bool inside = network_.NodeOf(from) == network_.NodeOf(to);
      (inside ? intra : inter).Add(route);
      group.hop_seconds = std::max(group.hop_seconds, route.latency_seconds);
      (inside ? group.intra_hops : group.inter_hops)
          .push_back(
              PairOf(from, to, model_ == nullptr ? route.latency_seconds : 0));
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
  group.communicator = CommunicatorOf(gpus, group);
  if (group.inter_hops.empty() && !group.intra_hops.empty()) {
    const auto [at, added] = hop_set_index_.try_emplace(
        group.intra_hops, static_cast<int32_t>(hop_sets_.size()));
    if (added) hop_sets_.push_back({group.intra_hops, {}});
    group.hop_set = at->second;
  }
  return group;
}

double CommunicationLowering::SecondsPerByteOf(
    const std::vector<scenarios::Ring>& rings) {
  RouteLoads loads(network_);
  for (const scenarios::Ring& ring : rings) {
    for (size_t i = 0; i < ring.gpus.size(); ++i) {
      loads.Add(RouteOf(ring.gpus[i], ring.gpus[(i + 1) % ring.gpus.size()]));
    }
  }
  return loads.largest();
}

void CommunicationLowering::SetLinks(const std::vector<int>& gpus,
                                     Group* group) {
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
void CommunicationLowering::SetWires(Group* group) const {
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

void CommunicationLowering::AddLoad(const Group& group,
                                    const Collectives& collectives,
                                    Load* load) const {
  const auto [kind, bytes, count] = collectives;
  if (model_ == nullptr) {
    const int n = group.links.num_ranks;
    const double steps = Passes(kind) * (n - 1);
    const double hop_bytes = count * bytes * steps / n / group.num_rings;
    load->intra_bytes += hop_bytes;
    load->inter_bytes += hop_bytes;
    load->latency_seconds += steps * count * group.hop_seconds;
    return;
  }
  const calibrate::CollectiveCost& cost =
      prices_.Of(*model_, kind, bytes, group.links);
  load->latency_seconds += count * cost.latency_seconds;
  if (group.shares_links) {
    const double hop_bytes =
        count * cost.LinkSeconds() / group.intra_seconds_per_byte;
    load->intra_bytes += hop_bytes;
    load->inter_bytes += hop_bytes;
    return;
  }
  if (cost.intra_bytes > 0) {
    load->intra_bytes += count * cost.intra_bytes /
                         cost.intra_bytes_per_second /
                         group.intra_seconds_per_byte;
  }
  if (cost.inter_bytes > 0) {
    load->inter_bytes += count * cost.inter_bytes /
                         cost.inter_bytes_per_second /
                         group.inter_seconds_per_byte;
  }
}

void CommunicationLowering::CountCall(const Collectives& collectives,
                                      const calibrate::CollectiveGroup& group,
                                      LinkClass::Distance distance) {
  const bool measured = distance != LinkClass::DISTANCE_UNSPECIFIED;
  if ((model_ == nullptr && !measured) || group.num_ranks < 2) return;
  const auto& [kind, bytes, count] = collectives;
  const auto [at, added] = call_index_.try_emplace(
      {role_, kind, bytes, group.num_ranks, group.ranks_per_node,
       group.intra_bytes_per_second, group.inter_bytes_per_second, distance},
      calls_.size());
  if (added) calls_.push_back({role_, kind, bytes, group, 0, distance});
  calls_[at->second].count += count;
}

CommunicationLowering::Load CommunicationLowering::LoadOf(
    const Group& group, std::span<const Collectives> collectives) const {
  Load load;
  for (const Collectives& one : collectives) AddLoad(group, one, &load);
  // The flows themselves already take one hop's latency.
  if (model_ == nullptr && load.latency_seconds > 0) {
    load.latency_seconds -= group.hop_seconds;
  }
  return load;
}

bool CommunicationLowering::CarryAlike(
    const HopSet& set, const std::vector<int64_t>& pair_flows,
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

void CommunicationLowering::MergeHops() {
  if (symmetry_ != nullptr)
    return;  // one flow represents more than these already
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

double CommunicationLowering::SecondsAlone(
    const Group& group, std::span<const Collectives> collectives) const {
  const Load load = LoadOf(group, collectives);
  // Flows carry whole bytes; without bytes there is no latency either.
  const double intra_bytes = std::round(load.intra_bytes);
  const double inter_bytes = std::round(load.inter_bytes);
  if (intra_bytes == 0 && inter_bytes == 0) return 0;
  const double hop = model_ == nullptr ? group.hop_seconds : 0;
  return hop + load.latency_seconds +
         std::max(intra_bytes * group.intra_seconds_per_byte,
                  inter_bytes * group.inter_seconds_per_byte);
}

void CommunicationLowering::CountCollectives(
    const Group& group, std::span<const Collectives> collectives) {
  for (const Collectives& one : collectives) {
    CountCall(one, group.links);
    Communicator& communicator = communicators_[group.communicator];
    (one.kind == calibrate::CollectiveKind::kAllToAll
         ? communicator.pairs
         : communicator.collectives) = true;
  }
}

std::optional<CommunicationLowering::UncontendedSeconds>
CommunicationLowering::UncontendedSecondsOf(
    const Group& group, std::span<const Collectives> collectives) const {
  const Load load = LoadOf(group, collectives);
  const double intra_bytes = std::round(load.intra_bytes);
  const double inter_bytes = std::round(load.inter_bytes);
  if (intra_bytes == 0 && inter_bytes == 0) return UncontendedSeconds();
  if (group.intra_hops.size() + group.inter_hops.size() != 1) {
    return std::nullopt;
  }
  const bool intra = !group.intra_hops.empty();
  const int32_t hop = (intra ? group.intra_hops : group.inter_hops)[0];
  if (!symmetry_->color(pair_colors_[hop]).has_own_links) return std::nullopt;
  const scenarios::Route& route = tasks_->pairs[hop].route;
  double seconds_per_byte = 0;
  for (size_t i = 0, next = 0; i < route.links.size(); i = next) {
    while (next < route.links.size() && route.links[next] == route.links[i]) {
      ++next;  // a link that is named k times
    }
    seconds_per_byte =
        std::max(seconds_per_byte,
                 static_cast<double>(next - i) /
                     symmetry_->links()[route.links[i]].bytes_per_second);
  }
  UncontendedSeconds uncontended;
  uncontended.hop_latency = route.latency_seconds;
  uncontended.flow = route.latency_seconds +
                     (intra ? intra_bytes : inter_bytes) * seconds_per_byte;
  uncontended.latency = load.latency_seconds;
  return uncontended;
}

void CommunicationLowering::AddCollectives(
    const Group& group, std::span<const Collectives> collectives,
    int32_t before, int32_t after) {
  const Load load = LoadOf(group, collectives);
  const double intra_bytes = std::round(load.intra_bytes);
  const double inter_bytes = std::round(load.inter_bytes);
  if (intra_bytes == 0 && inter_bytes == 0) {  // a stage without parameters
    tasks_->AddEdge(before, after);
    return;
  }
  CountCollectives(group, collectives);
  if (group.hop_set >= 0 && intra_bytes > 0) {
    hop_sets_[group.hop_set].first_flows.push_back(tasks_->num_tasks());
  }
  const auto add = [&](const std::vector<int32_t>& hops, double bytes) {
    if (bytes == 0) return;
    for (int32_t pair : hops) {
      const int32_t flow = tasks_->AddFlow(pair, bytes);
      tasks_->AddEdge(before, flow);
      tasks_->AddEdge(flow, after);
    }
  };
  add(group.intra_hops, intra_bytes);
  add(group.inter_hops, inter_bytes);
  tasks_->SetSeconds(after, tasks_->amount(after) + load.latency_seconds);
}

}  // namespace weir::sim
