// SPDX-License-Identifier: Apache-2.0
// Communication routes between pairs of GPUs and in groups of GPUs, and their
// collectives as tasks.
#ifndef WEIR_SIM_GRAPH_COMMUNICATION_LOWERING_H_
#define WEIR_SIM_GRAPH_COMMUNICATION_LOWERING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "calibrate/pricing/collective_seconds.h"
#include "calibrate/profile/device_profile.pb.h"
#include "scenarios/cluster/network.h"
#include "sim/costs/call_prices.h"
#include "sim/engine/task_graph.h"

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
  int32_t hop_set = -1;              // if in one node, an index into hop_sets_
  int32_t communicator = -1;         // an index into communicators_
};

// `count` collectives of `bytes` each, one after the other.
struct Collectives {
  calibrate::CollectiveKind kind = calibrate::CollectiveKind::kAllReduce;
  double bytes = 0;
  double count = 1;
};

// The purpose of a collective or transfer.
enum class CollectiveRole { kTensor, kExpert, kReduction, kGather, kTransfer };

// Equal collectives of the whole run, priced by the model.
struct CollectiveCall {
  CollectiveRole role = CollectiveRole::kTensor;
  calibrate::CollectiveKind kind = calibrate::CollectiveKind::kAllReduce;
  double bytes = 0;
  calibrate::CollectiveGroup group;
  double count = 0;
  // For transfers between GPUs at this distance, if the profile has measured
  // them.
  LinkClass::Distance distance = LinkClass::DISTANCE_UNSPECIFIED;
};

// An uncontended transfer.
struct SendCost {
  int32_t pair = 0;
  double bytes = 0;  // on the links
};

class Symmetry;  // sim/graph/symmetry.h

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
    kTied,          // ranks a and b
    kToHost,        // from rank a
    kFromHost,
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

// The pairs of GPUs that send, and the routes between them.
class CommunicationLowering {
 public:
  // If `model` is not null, an uncontended collective takes exactly the time of
  // the model; if null, rings run at the full rate of the links, with a hop's
  // latency per step. Sends take the times that `links` has measured for their
  // distance; `links` may be null. With a fold the pairs are those of its
  // colors; without (null) roles are ignored.
  CommunicationLowering(const scenarios::Network& network,
                        const CollectiveModel* model,
                        const DeviceProfile* links, TaskGraph* tasks,
                        const Symmetry* symmetry = nullptr)
      : network_(network),
        model_(model),
        links_(links),
        tasks_(tasks),
        symmetry_(symmetry) {}

  // Sets the role of everything that is added from here on.
  void set_role(CollectiveRole role) { role_ = role; }
  // Returns all calls in the order of their first occurrence; empty without a
  // model or measured links.
  std::vector<CollectiveCall> ReleaseCollectives() { return std::move(calls_); }

  const scenarios::Route& RouteOf(int from, int to);
  // Returns a transfer of `bytes` over links, after the latency and
  // `extra_seconds`. Requires: the two GPUs are joined by links.
  SendCost SendBetween(int from, int to, double bytes, double extra_seconds,
                       const InstanceRole& role = {});
  // Returns the pair of a GPU and its host's memory; -1: not joined by links.
  int32_t HostPairOf(int gpu, bool to_host, const InstanceRole& role = {});
  Group GroupOf(const std::vector<int>& gpus, const InstanceRole& role = {});

  // Adds collectives from the end of `before` to the timer `after`, which
  // becomes longer by the latencies. Every hop carries the bytes of all steps
  // at once (measured to be equal to single steps, which need n times as many
  // flows).
  void AddCollectives(const Group& group,
                      std::span<const Collectives> collectives, int32_t before,
                      int32_t after);
  void AddCollectives(const Group& group, const Collectives& collectives,
                      int32_t before, int32_t after) {
    AddCollectives(group, {&collectives, 1}, before, after);
  }

  // With a fold: the time of collectives from the end of one task to the end of
  // another, as flows followed by latencies, if uncontended. Nothing if other
  // flows cross their links.
  struct UncontendedSeconds {
    double hop_latency = 0;  // before the flows move bytes
    double flow = 0, latency = 0;
  };
  std::optional<UncontendedSeconds> UncontendedSecondsOf(
      const Group& group, std::span<const Collectives> collectives) const;
  // Counts them as AddCollectives does.
  void CountCollectives(const Group& group,
                        std::span<const Collectives> collectives);

  // Keeps a single flow for all hops of a group in a node if nothing else uses
  // their links, since all of them then carry the same bytes at the same time.
  // Call once, after the last flow was added. Does not change times.
  void MergeHops();

  // Returns the GPUs that each pair's flows touch. Call after MergeHops.
  std::vector<Slowdowns::Touch> Touches() const;

  // Counts the communicators of each GPU of the cluster in what was added.
  std::vector<calibrate::CommunicatorCounts> CountCommunicators() const;

  // Returns the uncontended seconds of the collectives.
  double SecondsAlone(const Group& group,
                      std::span<const Collectives> collectives) const;

  // The total load of several collectives on the links, and their latencies
  // beyond those of the hops.
  struct Load {
    double intra_bytes = 0, inter_bytes = 0;  // per hop
    double latency_seconds = 0;
  };
  Load LoadOf(const Group& group,
              std::span<const Collectives> collectives) const;

 private:
  void AddLoad(const Group& group, const Collectives& collectives,
               Load* load) const;
  void CountCall(
      const Collectives& collectives, const calibrate::CollectiveGroup& group,
      LinkClass::Distance distance = LinkClass::DISTANCE_UNSPECIFIED);
  LinkClass::Distance DistanceBetween(int from, int to) const;
  // Records and returns a transfer over `pair`, from one GPU to the other.
  SendCost SendOver(int32_t pair, int from, int to, double bytes);
  // Returns the index into TaskGraph::pairs for flows with this latency.
  int32_t PairOf(int from, int to, double latency_seconds);
  int32_t ReducedPairOf(int32_t color, double latency_seconds);
  int32_t SendPairOf(int from, int to, double latency_seconds,
                     const InstanceRole& role);
  Group ReducedGroupOf(const InstanceRole& role);
  // Returns the index of the communicator of these GPUs, for memory.
  int32_t CommunicatorOf(std::vector<int> gpus, const Group& group);
  // Returns the largest time that a link needs for one byte over every hop of
  // these rings.
  double SecondsPerByteOf(const std::vector<scenarios::Ring>& rings);
  void SetLinks(const std::vector<int>& gpus, Group* group);
  void SetWires(Group* group) const;

  const scenarios::Network& network_;
  const CollectiveModel* model_;
  mutable CallPrices prices_;
  const DeviceProfile* links_;
  TaskGraph* tasks_;
  const Symmetry* symmetry_;
  CollectiveRole role_ = CollectiveRole::kTensor;
  std::vector<CollectiveCall> calls_;
  // Index into calls_ by role, kind, bytes, ranks, ranks in a node, rates and
  // distance.
  absl::flat_hash_map<
      std::tuple<CollectiveRole, calibrate::CollectiveKind, double, int, int,
                 double, double, LinkClass::Distance>,
      size_t>
      call_index_;
  // The hops of a group in a node, and the first flow of each of its
  // collectives.
  struct HopSet {
    std::vector<int32_t> hops;
    std::vector<int32_t> first_flows;
  };
  bool CarryAlike(const HopSet& set, const std::vector<int64_t>& pair_flows,
                  const std::vector<int32_t>& link_pairs) const;

  // SimGrid has one latency between two hosts, so that a GPU has a host for
  // each latency of its flows.
  std::vector<double> latencies_;
  absl::flat_hash_map<std::tuple<int, int, int>, int32_t> pair_index_;
  absl::node_hash_map<std::pair<int, int>, scenarios::Route> routes_;
  std::vector<HopSet> hop_sets_;
  std::vector<size_t> merged_hop_sets_;  // indices into hop_sets_
  // The kinds of calls over a set of GPUs.
  struct Communicator {
    bool across_nodes = false, nvls = false;
    bool collectives = false, pairs = false;
  };
  std::vector<Communicator> communicators_;
  absl::flat_hash_map<std::vector<int>, int32_t> communicator_index_;
  // [pair]: the GPUs of the transfers over it, from and to; -1: none.
  std::vector<std::pair<int32_t, int32_t>> sends_;
  std::vector<int32_t> pair_colors_;  // [pair], with a fold
  absl::flat_hash_map<std::vector<int32_t>, int32_t> hop_set_index_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_COMMUNICATION_LOWERING_H_
