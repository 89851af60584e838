// SPDX-License-Identifier: Apache-2.0
// What a collective costs, after NCCL's own cost model (NCCL v2.28.9
// src/graph/tuning.cc): for every algorithm and protocol
//
//   seconds = base + hops * hop + wire bytes / rate
//
// and the cheapest is taken. Two terms are added, which NCCL's table lacks and
// measurements show: a pipelined message is cut into chunks of a fixed cost c
// each, the best cut of a message that keeps the links busy for x seconds
// costs 2 sqrt(c x) more (Simple and NVLS); and a rank's own block, 1/n of the
// bytes, passes through its memory (all but LL).
#ifndef WEIR_CALIBRATE_COLLECTIVE_SECONDS_H_
#define WEIR_CALIBRATE_COLLECTIVE_SECONDS_H_

#include "absl/strings/string_view.h"
#include "calibrate/collective_model.pb.h"

namespace weir {

enum class CollectiveKind {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSendReceive,
};

enum class CollectiveAlgorithm { kRing, kTree, kNvls, kPairs };
enum class CollectiveProtocol { kLl, kLl128, kSimple };

absl::string_view NameOf(CollectiveKind kind);            // "all_reduce"
absl::string_view NameOf(CollectiveAlgorithm algorithm);  // "ring"
absl::string_view NameOf(CollectiveProtocol protocol);    // "LL128"

// The ranks of a collective and the links between them.
struct CollectiveGroup {
  int num_ranks = 1;
  int ranks_per_node = 1;  // of this group, the same in every node
  // Datasheet rate, one direction, of the links of one GPU that lead to the
  // others of the group in its node.
  double intra_bytes_per_second = 0;
  // Of the network adapters that one rank of the group may use. Rings and trees
  // use those of all its ranks in the node. Only read across nodes.
  double inter_bytes_per_second = 0;
  bool pci = false;   // no NVLink between them
  bool nvls = false;  // switches that reduce
  // Groups that use the same adapters at the same time and are not simulated
  // as flows of their own; divides inter_bytes_per_second.
  double num_sharing = 1;
};

// What the cheapest choice costs. The links are taken for
// max(intra, inter) of bytes / rate; latency_seconds are not on the links.
struct CollectiveCost {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  CollectiveProtocol protocol = CollectiveProtocol::kSimple;
  double latency_seconds = 0;
  // Sent by each rank within its node, and the most a flow of them may get.
  double intra_bytes = 0;
  double intra_bytes_per_second = 0;
  // Sent out of the node for each rank in it, and the most of a flow; 0 in one
  // node.
  double inter_bytes = 0;
  double inter_bytes_per_second = 0;

  double LinkSeconds() const;
  double Seconds() const { return latency_seconds + LinkSeconds(); }
};

// `bytes` as nccl-tests counts `size`: the whole vector of an all-reduce; all
// that a rank has received after an all-gather; all that it gives to a
// reduce-scatter; all that it sends in an all-to-all, its own block included;
// the message of a send. Nothing for one rank.
// REQUIRES: the model is valid; bytes >= 0; ranks_per_node divides num_ranks;
// rates that the group needs are > 0.
CollectiveCost CheapestCollective(const CollectiveModel& model,
                                  CollectiveKind kind, double bytes,
                                  const CollectiveGroup& group);

// Device memory of a rank's communicators.
struct CommunicatorCounts {
  int num_in_node = 0;       // of several ranks of one node
  int num_across_nodes = 0;  // trees are set up too
  int num_nvls = 0;          // of those, with NVLS
  int num_pair_peers = 0;    // sent to or received from, each communicator
};
// REQUIRES: the model is valid. 0 where there is no communicator.
double CommunicatorBytes(const CollectiveModel& model,
                         const CommunicatorCounts& counts);

}  // namespace weir

#endif  // WEIR_CALIBRATE_COLLECTIVE_SECONDS_H_
