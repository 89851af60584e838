// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pricing/collective_seconds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace weir::calibrate {
namespace {

// Inputs of one cost evaluation, named as in NCCL v2.28.9 src/graph/tuning.cc.
struct CollectiveQuery {
  const CollectiveModel& model;
  models::CollectiveKind kind;
  double bytes;
  const CollectiveGroup& group;
  int num_nodes;
  // Steps of a ring, each of 1/n of the bytes, and the steps between nodes.
  int num_steps;
  int num_net_steps;
};

int Passes(models::CollectiveKind kind) {
  return kind == models::CollectiveKind::kAllReduce ? 2 : 1;
}

// Returns floor(log2(n)), NCCL's log2i.
int Log2(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }

double HopSeconds(const CollectiveQuery& q, const ProtocolCosts& costs) {
  return q.group.pci ? costs.pci_hop_seconds().value()
                     : costs.nvlink_hop_seconds().value();
}

double IntraRate(const CollectiveQuery& q, const ProtocolCosts& costs,
                 double part) {
  const double links = q.group.intra_bytes_per_second *
                       q.model.link_efficiency().value() *
                       costs.link_part().value() * part;
  return costs.has_max_bytes_per_second()
             ? std::min(links, costs.max_bytes_per_second().value())
             : links;
}

double InterRate(const CollectiveQuery& q, double part) {
  return q.group.inter_bytes_per_second / q.group.num_sharing *
         q.model.net_efficiency().value() * part;
}

// Completes a cost whose bytes, rates and hops are set: adds the cost of chunks
// and of the rank's own block.
void AddLocalSeconds(const CollectiveQuery& q, CollectiveCost* cost) {
  if (cost->protocol == CollectiveProtocol::kLl) return;
  const CollectiveModel& model = q.model;
  if (cost->protocol == CollectiveProtocol::kSimple) {
    const double chunk = cost->algorithm == CollectiveAlgorithm::kNvls
                             ? model.nvls_chunk_seconds().value()
                             : model.chunk_seconds().value();
    cost->latency_seconds += 2 * std::sqrt(chunk * cost->LinkSeconds());
  }
  if (model.has_local_bytes_per_second() &&
      q.kind != models::CollectiveKind::kSendReceive) {
    cost->latency_seconds +=
        q.bytes / q.group.num_ranks / model.local_bytes_per_second().value();
  }
}

CollectiveCost Ring(const CollectiveQuery& q, CollectiveProtocol protocol,
                    const ProtocolCosts& costs) {
  const bool simple = protocol == CollectiveProtocol::kSimple;
  CollectiveCost cost{CollectiveAlgorithm::kRing, protocol};
  double hop = HopSeconds(q, costs);
  if (q.num_nodes > 1) {
    // Every step waits until the one over the network is posted.
    const double post = q.model.net_overhead_seconds().value();
    hop = std::max(hop, simple ? 3 * post : post);
  }
  const double net_hop = q.group.ranks_per_node == 1
                             ? costs.net_tree_hop_seconds().value()
                             : costs.net_ring_hop_seconds().value();
  cost.latency_seconds = costs.base_seconds().value() +
                         (q.num_steps - q.num_net_steps) * hop +
                         q.num_net_steps * net_hop;
  if (simple && q.num_nodes > 1 &&
      q.kind == models::CollectiveKind::kAllReduce &&
      q.model.has_net_plateau()) {
    cost.latency_seconds *= q.model.net_plateau().value();
  }
  const double wire_bytes = q.bytes * q.num_steps / q.group.num_ranks;
  if (q.group.ranks_per_node > 1) {
    cost.intra_bytes = wire_bytes;
    cost.intra_bytes_per_second = IntraRate(q, costs, 1);
  }
  if (q.num_nodes > 1) {
    // Each ring leaves the node once, through the adapter of a different rank.
    cost.inter_bytes = wire_bytes / q.group.ranks_per_node;
    cost.inter_bytes_per_second = InterRate(q, costs.link_part().value());
  }
  AddLocalSeconds(q, &cost);
  return cost;
}

// Returns the bytes that a node of a double binary tree sends. A node is an
// inner node of one tree and a leaf of the other, and sends half of all bytes
// up twice and down twice. Two nodes only exchange one half in each direction
// per tree.
double TreeBytes(double bytes, int num_nodes) {
  return num_nodes == 2 ? bytes : 2 * bytes;
}

CollectiveCost Tree(const CollectiveQuery& q, CollectiveProtocol protocol,
                    const ProtocolCosts& costs) {
  constexpr double kPart = 0.92;  // NCCL v2.28.9 src/graph/tuning.cc
  CollectiveCost cost{CollectiveAlgorithm::kTree, protocol};
  const int per_node = q.group.ranks_per_node;
  cost.latency_seconds =
      costs.base_seconds().value() +
      2 * ((per_node - 1) * HopSeconds(q, costs) +
           Log2(q.num_nodes) * costs.net_tree_hop_seconds().value());
  if (per_node > 1) {
    cost.intra_bytes = 2 * q.bytes;  // up and down the chain
    cost.intra_bytes_per_second = IntraRate(q, costs, kPart);
  }
  cost.inter_bytes = TreeBytes(q.bytes, q.num_nodes) / per_node;
  cost.inter_bytes_per_second = InterRate(q, costs.link_part().value() * kPart);
  AddLocalSeconds(q, &cost);
  return cost;
}

// Returns the cost of NVLS, where the switches reduce: a rank sends them all
// bytes and sends its reduced block once. Between nodes the blocks go through
// trees.
CollectiveCost Nvls(const CollectiveQuery& q) {
  CollectiveCost cost{CollectiveAlgorithm::kNvls, CollectiveProtocol::kSimple};
  const int per_node = q.group.ranks_per_node;
  cost.latency_seconds = q.model.nvls_base_seconds().value();
  cost.intra_bytes = q.bytes * (per_node + 1) / per_node;
  cost.intra_bytes_per_second =
      q.group.intra_bytes_per_second * q.model.nvls_efficiency().value();
  if (q.num_nodes > 1) {
    cost.latency_seconds +=
        2 * Log2(q.num_nodes) * q.model.simple().net_tree_hop_seconds().value();
    cost.inter_bytes = TreeBytes(q.bytes, q.num_nodes) / per_node;
    cost.inter_bytes_per_second = InterRate(q, 1);
  }
  AddLocalSeconds(q, &cost);
  return cost;
}

CollectiveCost Pairs(const CollectiveQuery& q, CollectiveProtocol protocol) {
  CollectiveCost cost{CollectiveAlgorithm::kPairs, protocol};
  const PairCosts& pairs = q.model.pairs();
  const bool simple = protocol == CollectiveProtocol::kSimple;
  const int n = q.group.num_ranks, per_node = q.group.ranks_per_node;
  cost.latency_seconds = (simple ? pairs.simple_base_seconds().value()
                                 : pairs.ll_base_seconds().value()) +
                         (n - 1) * pairs.peer_seconds().value();
  const double block =
      q.kind == models::CollectiveKind::kSendReceive ? q.bytes : q.bytes / n;
  if (per_node > 1) {
    double rate =
        q.group.intra_bytes_per_second * pairs.link_efficiency().value();
    if (!simple) {
      rate = std::min(rate * q.model.ll().link_part().value(),
                      pairs.ll_max_bytes_per_second().value());
    }
    cost.intra_bytes = block * (per_node - 1);
    cost.intra_bytes_per_second = rate;
  }
  if (q.num_nodes > 1) {
    cost.latency_seconds += q.model.simple().net_ring_hop_seconds().value();
    cost.inter_bytes = block * (n - per_node);
    cost.inter_bytes_per_second = InterRate(q, 1);
  }
  AddLocalSeconds(q, &cost);
  return cost;
}

CollectiveCost CheapestPairs(const CollectiveQuery& q) {
  const CollectiveCost simple = Pairs(q, CollectiveProtocol::kSimple);
  // NCCL never uses LL over the network (NCCL v2.28.9 src/enqueue.cc).
  if (q.num_nodes > 1) return simple;
  const CollectiveCost ll = Pairs(q, CollectiveProtocol::kLl);
  return ll.Seconds() < simple.Seconds() ? ll : simple;
}

}  // namespace

double CollectiveCost::LinkSeconds() const {
  const double intra =
      intra_bytes > 0 ? intra_bytes / intra_bytes_per_second : 0;
  const double inter =
      inter_bytes > 0 ? inter_bytes / inter_bytes_per_second : 0;
  return std::max(intra, inter);
}

absl::string_view NameOf(CollectiveAlgorithm algorithm) {
  constexpr absl::string_view kNames[] = {"ring", "tree", "NVLS", "pairs"};
  return kNames[static_cast<int>(algorithm)];
}

absl::string_view NameOf(CollectiveProtocol protocol) {
  constexpr absl::string_view kNames[] = {"LL", "LL128", "Simple"};
  return kNames[static_cast<int>(protocol)];
}

CollectiveCost CheapestCollective(const CollectiveModel& model,
                                  models::CollectiveKind kind, double bytes,
                                  const CollectiveGroup& group) {
  if (group.num_ranks <= 1) return {};
  const int num_nodes = group.num_ranks / group.ranks_per_node;
  const int passes = Passes(kind);
  const CollectiveQuery q{model,
                          kind,
                          bytes,
                          group,
                          num_nodes,
                          passes * (group.num_ranks - 1),
                          passes * (num_nodes - 1)};
  if (kind == models::CollectiveKind::kAllToAll ||
      kind == models::CollectiveKind::kSendReceive) {
    return CheapestPairs(q);
  }
  CollectiveCost best;
  double best_seconds = std::numeric_limits<double>::infinity();
  const auto consider = [&](const CollectiveCost& cost) {
    if (cost.Seconds() < best_seconds) {
      best = cost;
      best_seconds = cost.Seconds();
    }
  };
  const auto consider_protocol = [&](CollectiveProtocol protocol,
                                     const ProtocolCosts& costs) {
    consider(Ring(q, protocol, costs));
    if (kind == models::CollectiveKind::kAllReduce && num_nodes > 1) {
      consider(Tree(q, protocol, costs));
    }
  };
  consider_protocol(CollectiveProtocol::kLl, model.ll());
  // LL128 needs 128-byte stores that are not split, which only NVLink provides.
  if (!group.pci) consider_protocol(CollectiveProtocol::kLl128, model.ll128());
  consider_protocol(CollectiveProtocol::kSimple, model.simple());
  if (kind == models::CollectiveKind::kAllReduce && group.nvls &&
      group.ranks_per_node > 2 && model.has_nvls_efficiency()) {
    consider(Nvls(q));
  }
  return best;
}

double CommunicatorBytes(const CollectiveModel& model,
                         const CommunicatorCounts& counts) {
  const CommunicatorMemory& memory = model.memory();
  const int num_communicators = counts.num_in_node + counts.num_across_nodes;
  if (num_communicators + counts.num_pair_peers == 0) return 0;
  const double buffers = memory.ll_buffer_bytes().value() +
                         memory.ll128_buffer_bytes().value() +
                         memory.simple_buffer_bytes().value();
  // A ring receives from one peer. Trees, which are set up only across nodes,
  // receive from a parent and a child.
  const double num_peers = counts.num_in_node + 3.0 * counts.num_across_nodes;
  // Sends and receives do not use LL128.
  const double pair_buffers =
      memory.ll_buffer_bytes().value() + memory.simple_buffer_bytes().value();
  return memory.once_bytes().value() +
         num_peers * memory.num_channels().value() * buffers +
         counts.num_nvls * memory.nvls_bytes().value() +
         counts.num_pair_peers * memory.num_pair_channels().value() *
             pair_buffers;
}

}  // namespace weir::calibrate
