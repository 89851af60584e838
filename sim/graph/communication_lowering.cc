// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/communication_lowering.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibrate/pricing/expert_exchange.h"
#include "calibrate/pricing/link_seconds.h"

namespace weir::sim {
namespace {

// An all-reduce sends its bytes around a ring twice.
double Passes(models::CollectiveKind kind) {
  return kind == models::CollectiveKind::kAllReduce ? 2 : 1;
}

}  // namespace

CommunicationLowering::CommunicationLowering(const scenarios::Network& network,
                                             const CollectiveModel* model,
                                             const DeviceProfile* links,
                                             TaskGraph* tasks)
    : network_(network),
      model_(model),
      links_(links),
      tasks_(tasks),
      routes_(network),
      pairs_(MakeFullPairs(network, model == nullptr, &routes_, tasks)) {}

CommunicationLowering::CommunicationLowering(const scenarios::Network& network,
                                             const CollectiveModel* model,
                                             const DeviceProfile* links,
                                             TaskGraph* tasks,
                                             const Representatives& gpus)
    : network_(network),
      model_(model),
      links_(links),
      tasks_(tasks),
      routes_(network),
      pairs_(gpus.reduced()
                 ? MakeReducedPairs(*gpus.symmetry(), model == nullptr, tasks)
                 : MakeFullPairs(network, model == nullptr, &routes_, tasks)) {}

Group CommunicationLowering::GroupOf(const std::vector<int>& gpus,
                                     const InstanceRole& role) {
  Group group = pairs_->OfGroup(gpus, role);
  group.communicator = CommunicatorOf(gpus, group);
  return group;
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
                                            const InstanceRole& role,
                                            double count) {
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
    CountCall({models::CollectiveKind::kSendReceive, bytes, count}, pair,
              distance);
    return SendOver(from, to, std::round(time.link_seconds / seconds_per_byte),
                    time.latency_seconds + extra_seconds, role);
  }
  if (model_ == nullptr) {
    return SendOver(from, to, bytes, route.latency_seconds + extra_seconds,
                    role);
  }
  const scenarios::Wire wire = network_.WireBetween(from, to);
  calibrate::CollectiveGroup pair;
  pair.num_ranks = 2;
  pair.ranks_per_node = wire == scenarios::Wire::kNetwork ? 1 : 2;
  pair.intra_bytes_per_second = pair.inter_bytes_per_second =
      1 / seconds_per_byte;
  pair.pci = wire == scenarios::Wire::kPcie;
  const calibrate::CollectiveCost cost = calibrate::CheapestCollective(
      *model_, models::CollectiveKind::kSendReceive, bytes, pair);
  CountCall({models::CollectiveKind::kSendReceive, bytes, count}, pair);
  return SendOver(from, to, std::round(cost.LinkSeconds() / seconds_per_byte),
                  cost.latency_seconds + extra_seconds, role);
}

SendCost CommunicationLowering::SendOver(int from, int to, double bytes,
                                         double latency_seconds,
                                         const InstanceRole& role) {
  const int32_t pair = pairs_->OfSend(from, to, latency_seconds, role);
  sends_.resize(tasks_->pairs.size(), {-1, -1});
  sends_[pair] = {from, to};
  return {pair, bytes, latency_seconds};
}

RingCost CommunicationLowering::RingOver(
    const RingHop& hop, std::span<const Collectives> messages) {
  RingCost cost;
  const scenarios::Route& route = RouteOf(hop.from, hop.to);
  for (const auto& [kind, bytes, count, routing] : messages) {
    if (bytes == 0) continue;
    if (route.links.empty()) {
      cost.latency_seconds += count * route.latency_seconds;
      continue;
    }
    const SendCost send =
        SendBetween(hop.from, hop.to, bytes, 0, hop.role, count);
    cost.bytes += count * send.bytes;
    cost.latency_seconds += count * send.latency_seconds;
    if (cost.pair >= 0) continue;
    cost.pair = send.pair;
    cost.latency_seconds -= send.latency_seconds;
  }
  cost.bytes = std::round(cost.bytes);
  return cost;
}

void CommunicationLowering::AddRing(std::span<const RingHop> hops,
                                    std::span<const Collectives> messages,
                                    int32_t before, int32_t after) {
  double latency_seconds = 0;
  tasks_->AddEdge(before, after);
  for (const RingHop& hop : hops) {
    const RingCost cost = RingOver(hop, messages);
    latency_seconds = std::max(latency_seconds, cost.latency_seconds);
    if (cost.bytes == 0) continue;
    const int32_t flow = tasks_->AddFlow(cost.pair, cost.bytes);
    tasks_->AddEdge(before, flow);
    tasks_->AddEdge(flow, after);
  }
  tasks_->SetSeconds(after, tasks_->amount(after) + latency_seconds);
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

void CommunicationLowering::AddLoad(const Group& group,
                                    const Collectives& collectives,
                                    CollectiveLoad* load) const {
  const auto& [kind, bytes, count, routing] = collectives;
  if (model_ == nullptr) {
    const int n = group.links.num_ranks;
    const double steps = Passes(kind) * (n - 1);
    const double hop_bytes = count * bytes * steps / n / group.num_rings;
    load->intra_bytes += hop_bytes;
    load->inter_bytes += hop_bytes;
    load->latency_seconds += steps * count * group.hop_seconds;
    return;
  }
  const calibrate::CollectiveCost cost =
      routing.tokens > 0
          ? calibrate::ExchangeCost(*model_, routing, group.links)
          : prices_.Of(*model_, kind, bytes, group.links);
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

std::optional<size_t> CommunicationLowering::CountCall(
    const Collectives& collectives, const calibrate::CollectiveGroup& group,
    LinkClass::Distance distance) {
  const bool measured = distance != LinkClass::DISTANCE_UNSPECIFIED;
  if ((model_ == nullptr && !measured) || group.num_ranks < 2) {
    return std::nullopt;
  }
  const auto& [kind, bytes, count, routing] = collectives;
  const auto [at, added] = call_index_.try_emplace(
      {purpose_, kind, bytes, group.num_ranks, group.ranks_per_node,
       group.intra_bytes_per_second, group.inter_bytes_per_second, distance,
       routing.tokens, routing.experts, routing.combine},
      calls_.size());
  if (added) {
    calls_.push_back({purpose_, kind, bytes, group, 0, routing, distance});
  }
  calls_[at->second].count += count;
  return at->second;
}

CollectiveLoad CommunicationLowering::LoadOf(
    const Group& group, std::span<const Collectives> collectives) const {
  CollectiveLoad load;
  for (const Collectives& one : collectives) AddLoad(group, one, &load);
  // The flows themselves already take one hop's latency.
  if (model_ == nullptr && load.latency_seconds > 0) {
    load.latency_seconds -= group.hop_seconds;
  }
  return load;
}

double CommunicationLowering::SecondsOf(const Group& group,
                                        const CollectiveLoad& load) const {
  // Flows carry whole bytes; without bytes there is no latency either.
  const double intra_bytes = std::round(load.intra_bytes);
  const double inter_bytes = std::round(load.inter_bytes);
  if (intra_bytes == 0 && inter_bytes == 0) return 0;
  const double hop = model_ == nullptr ? group.hop_seconds : 0;
  return hop + load.latency_seconds +
         std::max(intra_bytes * group.intra_seconds_per_byte,
                  inter_bytes * group.inter_seconds_per_byte);
}

double CommunicationLowering::SecondsAlone(
    const Group& group, std::span<const Collectives> collectives) const {
  return SecondsOf(group, LoadOf(group, collectives));
}

PricedCollectives CommunicationLowering::Price(
    const Group& group, std::span<const Collectives> calls) const {
  PricedCollectives priced;
  priced.calls.assign(calls.begin(), calls.end());
  priced.load = LoadOf(group, calls);
  priced.seconds_alone = SecondsOf(group, priced.load);
  return priced;
}

void CommunicationLowering::CountCollectives(const Group& group,
                                             PricedCollectives* collectives) {
  if (collectives->counted.empty()) {
    for (const Collectives& one : collectives->calls) {
      const std::optional<size_t> call = CountCall(one, group.links);
      if (call.has_value()) collectives->counted.push_back(*call);
      Communicator& communicator = communicators_[group.communicator];
      (one.kind == models::CollectiveKind::kAllToAll
           ? communicator.pairs
           : communicator.collectives) = true;
    }
    return;
  }
  // The same condition holds for all calls of a group: either all are counted
  // or none is.
  for (size_t i = 0; i < collectives->calls.size(); ++i) {
    calls_[collectives->counted[i]].count += collectives->calls[i].count;
  }
}

std::optional<CommunicationLowering::UncontendedSeconds>
CommunicationLowering::UncontendedSecondsOf(
    const Group& group, const PricedCollectives& collectives) const {
  const CollectiveLoad& load = collectives.load;
  const double intra_bytes = std::round(load.intra_bytes);
  const double inter_bytes = std::round(load.inter_bytes);
  if (intra_bytes == 0 && inter_bytes == 0) return UncontendedSeconds();
  if (group.intra_hops.size() + group.inter_hops.size() != 1) {
    return std::nullopt;
  }
  const bool intra = !group.intra_hops.empty();
  const int32_t hop = (intra ? group.intra_hops : group.inter_hops)[0];
  const std::optional<double> seconds_per_byte =
      pairs_->SecondsPerByteAlone(hop);
  if (!seconds_per_byte.has_value()) return std::nullopt;
  const double hop_latency = tasks_->pairs[hop].route.latency_seconds;
  UncontendedSeconds uncontended;
  uncontended.hop_latency = hop_latency;
  uncontended.flow =
      hop_latency + (intra ? intra_bytes : inter_bytes) * *seconds_per_byte;
  uncontended.latency = load.latency_seconds;
  return uncontended;
}

void CommunicationLowering::AddCollectives(const Group& group,
                                           PricedCollectives* collectives,
                                           int32_t before, int32_t after) {
  const CollectiveLoad& load = collectives->load;
  const double intra_bytes = std::round(load.intra_bytes);
  const double inter_bytes = std::round(load.inter_bytes);
  if (intra_bytes == 0 && inter_bytes == 0) {  // a stage without parameters
    tasks_->AddEdge(before, after);
    return;
  }
  CountCollectives(group, collectives);
  if (group.hop_set >= 0 && intra_bytes > 0) {
    pairs_->AddCollective(group.hop_set, tasks_->num_tasks());
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
