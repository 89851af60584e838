// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/expert_exchange.h"

#include <cmath>

namespace weir::calibrate {
namespace {

double Fourth(double x) { return x * x * x * x; }

bool IsKnown(const CollectiveModel& model,
             const models::TokenRouting& routing) {
  if (routing.hybrid) {
    return routing.combine ? model.has_hybrid_combine()
                           : model.has_hybrid_dispatch();
  }
  return routing.combine ? model.has_combine() : model.has_dispatch();
}

const TokenExchange& ExchangeFigures(const CollectiveModel& model,
                                     const models::TokenRouting& routing) {
  if (routing.hybrid) {
    return routing.combine ? model.hybrid_combine() : model.hybrid_dispatch();
  }
  return routing.combine ? model.combine() : model.dispatch();
}

}  // namespace

CollectiveCost ExchangeCost(const CollectiveModel& model,
                            const models::TokenRouting& routing,
                            const CollectiveGroup& group) {
  const double ranks = group.num_ranks, per_node = group.ranks_per_node;
  if (ranks <= 1) return {};
  const double nodes = ranks / per_node;
  const bool known = IsKnown(model, routing);
  const TokenExchange& figures = ExchangeFigures(model, routing);
  const double bytes = routing.tokens * routing.token_bytes;
  const double copies = models::GroupsReached(routing, ranks);
  const double reached_nodes = models::GroupsReached(routing, nodes);
  CollectiveCost cost{CollectiveAlgorithm::kPairs, CollectiveProtocol::kSimple};
  if (per_node > 1) {
    cost.intra_bytes = bytes * copies * (per_node - 1) / per_node;
    cost.intra_bytes_per_second =
        group.intra_bytes_per_second *
        (known ? figures.link_efficiency() : model.pairs().link_efficiency())
            .value();
  }
  if (nodes > 1) {
    cost.inter_bytes = bytes * reached_nodes * (nodes - 1) / nodes;
    cost.inter_bytes_per_second =
        group.inter_bytes_per_second / group.num_sharing *
        (known ? figures.net_efficiency() : model.net_efficiency()).value();
  }
  if (!known) {
    cost.latency_seconds =
        model.pairs().simple_base_seconds().value() +
        (ranks - 1) * model.pairs().peer_seconds().value() +
        (nodes > 1 ? model.simple().net_ring_hop_seconds().value() : 0);
    return cost;
  }
  const double work =
      (routing.tokens * (figures.token_seconds().value() +
                         copies * figures.copy_seconds().value()) +
       bytes * copies / figures.multiprocessor_bytes_per_second().value() +
       (nodes > 1
            ? bytes * reached_nodes / figures.forward_bytes_per_second().value()
            : 0)) /
      routing.multiprocessors;
  const double link = cost.LinkSeconds();
  cost.latency_seconds = figures.base_seconds().value() +
                         (nodes > 1 ? figures.net_base_seconds().value() : 0) +
                         std::sqrt(std::sqrt(Fourth(work) + Fourth(link))) -
                         link;
  return cost;
}

CollectiveCost CallCost(const CollectiveModel& model,
                        models::CollectiveKind kind, double bytes,
                        const models::TokenRouting& routing,
                        const CollectiveGroup& group) {
  return routing.tokens > 0 ? ExchangeCost(model, routing, group)
                            : CheapestCollective(model, kind, bytes, group);
}

}  // namespace weir::calibrate
