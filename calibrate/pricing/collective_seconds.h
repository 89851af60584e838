// SPDX-License-Identifier: Apache-2.0
// Cost of a collective, after NCCL's own cost model (NCCL v2.28.9
// src/graph/tuning.cc). For every algorithm and protocol
//
//   seconds = base + hops * hop + wire bytes / rate
//
// and the cheapest combination is used. Two terms are added that NCCL's table
// lacks but measurements show. A pipelined message is cut into chunks of a
// fixed cost c each, so with the best cut a message that keeps the links busy
// for x seconds takes 2 sqrt(c x) longer (Simple and NVLS). A rank's own block,
// 1/n of the bytes, passes through its memory (all protocols but LL).
#ifndef WEIR_CALIBRATE_PRICING_COLLECTIVE_SECONDS_H_
#define WEIR_CALIBRATE_PRICING_COLLECTIVE_SECONDS_H_

#include "absl/strings/string_view.h"
#include "calibrate/profile/collective_model.pb.h"
#include "models/collective_kind.h"

namespace weir::calibrate {

enum class CollectiveAlgorithm { kRing, kTree, kNvls, kPairs };
enum class CollectiveProtocol { kLl, kLl128, kSimple };

absl::string_view NameOf(CollectiveAlgorithm algorithm);  // "ring"
absl::string_view NameOf(CollectiveProtocol protocol);    // "LL128"

// The ranks of a collective and the links between them.
struct CollectiveGroup {
  int num_ranks = 1;
  int ranks_per_node = 1;  // ranks of this group, the same in every node
  // Datasheet rate in one direction of the links from one GPU to the other GPUs
  // of the group in its node.
  double intra_bytes_per_second = 0;
  // Rate of the network adapters that one rank of the group may use. Rings and
  // trees use those of all its ranks in the node. Only read across nodes.
  double inter_bytes_per_second = 0;
  bool pci = false;   // the GPUs of a node have no NVLink
  bool nvls = false;  // the switches can reduce
  // Number of groups that use the same adapters at the same time and are not
  // simulated as separate flows; divides inter_bytes_per_second.
  double num_sharing = 1;
};

// Cost of the cheapest algorithm and protocol. The links are busy for
// max(intra, inter) of bytes / rate; latency_seconds does not occupy them.
struct CollectiveCost {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  CollectiveProtocol protocol = CollectiveProtocol::kSimple;
  double latency_seconds = 0;
  // Bytes that each rank sends within its node, and the maximum rate of that
  // flow.
  double intra_bytes = 0;
  double intra_bytes_per_second = 0;
  // Bytes sent out of the node per rank in it, and the maximum rate of that
  // flow; 0 within one node.
  double inter_bytes = 0;
  double inter_bytes_per_second = 0;

  double LinkSeconds() const;
  double Seconds() const { return latency_seconds + LinkSeconds(); }
};

// Returns the cost of the cheapest algorithm and protocol; zero for one rank.
// `bytes` is what nccl-tests reports as `size`: the whole vector of an
// all-reduce; all bytes that a rank holds after an all-gather; all bytes that
// it contributes to a reduce-scatter; all bytes that it sends in an all-to-all,
// its own block included; the message of a send. Requires: the model is valid;
// bytes >= 0; ranks_per_node divides num_ranks; the rates that the group needs
// are positive.
CollectiveCost CheapestCollective(const CollectiveModel& model,
                                  models::CollectiveKind kind, double bytes,
                                  const CollectiveGroup& group);

// Numbers of communicators of a rank, for CommunicatorBytes().
struct CommunicatorCounts {
  int num_in_node = 0;  // communicators of several ranks in one node
  // Communicators across nodes; these also set up trees.
  int num_across_nodes = 0;
  int num_nvls = 0;  // those of the above that use NVLS
  // Peers sent to or received from, summed over communicators.
  int num_pair_peers = 0;
};
// Returns the device memory of a rank's communicators; 0 without communicators.
// Requires: the model is valid.
double CommunicatorBytes(const CollectiveModel& model,
                         const CommunicatorCounts& counts);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PRICING_COLLECTIVE_SECONDS_H_
