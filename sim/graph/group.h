// SPDX-License-Identifier: Apache-2.0
// Groups of GPUs with collectives, and the roles of groups and transfers.
#ifndef WEIR_SIM_GRAPH_GROUP_H_
#define WEIR_SIM_GRAPH_GROUP_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "calibrate/pricing/collective_seconds.h"

namespace weir::sim {

// A set of GPUs and the hops of its collectives, which are those of its rings.
struct Group {
  std::vector<int32_t> intra_hops, inter_hops;  // pairs, in and between nodes
  int num_rings = 0;
  // Time of one byte over every hop of every ring if the rings have the links
  // to themselves. If a link carries hops both in and between nodes, as a PCIe
  // tree does, or NVLink to another GPU's adapter, the collective loads all
  // hops equally, and both values are the time of all hops.
  double intra_seconds_per_byte = 0, inter_seconds_per_byte = 0;
  bool shares_links = false;
  double hop_seconds = 0;            // largest latency of any hop
  calibrate::CollectiveGroup links;  // as priced by calibrate/
  int32_t hop_set = -1;              // if in one node, an index (flow_pairs.h)
  int32_t communicator = -1;         // an index of the lowering
};

// The purpose of a flow when one GPU represents several: a pair of ranks, a
// group of GPUs, or a GPU and its host. The meaning of a and b depends on the
// kind.
struct InstanceRole {
  enum class Kind : uint8_t {
    kSend,          // from rank a to rank b
    kTensor,        // the tensor group of rank a
    kExperts,       // an expert-parallel group of rank a
    kCopies,        // the a-th of Traffic::copies
    kExpertCopies,  // the same, but with the same experts
    kShards,        // the same, but in one group of hybrid sharding
    kShardCopies,   // the same, but with the same shards
    kTied,          // ranks a and b
    kToHost,        // from rank a
    kFromHost,
    kContext,       // context-parallel neighbors of rank a
    kContextRing,   // from a GPU of rank a to the next one of its ring
    kExpertTensor,  // the GPUs of rank a that share an expert
  };
  Kind kind = Kind::kSend;
  int32_t a = 0, b = 0;
  // Indices among the representatives; for a group, those of its first GPU.
  int32_t replica = 0, tensor_rank = 0;

  bool operator==(const InstanceRole&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const InstanceRole& role) {
    return H::combine(std::move(h), role.kind, role.a, role.b, role.replica,
                      role.tensor_rank);
  }
};

// A GPU of a ring, and the next one.
struct RingHop {
  int from = 0, to = 0;
  InstanceRole role;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_GROUP_H_
