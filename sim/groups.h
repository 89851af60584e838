// SPDX-License-Identifier: Apache-2.0
// Who communicates over which links: pairs of GPUs and groups of them, and
// their collectives as tasks.
#ifndef WEIR_SIM_GROUPS_H_
#define WEIR_SIM_GROUPS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "calibrate/collective_seconds.h"
#include "calibrate/device_profile.pb.h"
#include "scenarios/network.h"
#include "sim/call_prices.h"
#include "sim/task_graph.h"

namespace weir {

// Some GPUs and the hops that their collectives use: those of their rings.
struct Group {
  std::vector<int32_t> intra_hops, inter_hops;  // pairs, in and between nodes
  int num_rings = 0;
  // What one byte over every hop of every ring takes where the rings have the
  // links for themselves. Where a link carries hops in and between nodes, as a
  // PCIe tree does, or NVLink before another GPU's adapter, the collective
  // loads all hops alike, and both are what all of them take.
  double intra_seconds_per_byte = 0, inter_seconds_per_byte = 0;
  bool shares_links = false;
  double hop_seconds = 0;     // largest latency of any hop
  CollectiveGroup links;      // as calibrate/ prices it
  int32_t hop_set = -1;       // of those in one node, an index into hop_sets_
  int32_t communicator = -1;  // an index into communicators_
};

// `count` collectives of `bytes` each, one after the other.
struct Collectives {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  double bytes = 0;
  double count = 1;
};

// What collectives are for.
enum class CallRole { kTensor, kExpert, kReduction, kGather, kTransfer };

// Equal collectives of the whole run, priced by the model.
struct CollectiveCall {
  CallRole role = CallRole::kTensor;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  double bytes = 0;
  CollectiveGroup group;
  double count = 0;
  // Of transfers between GPUs so far apart, where the profile has measured
  // them.
  LinkClass::Distance distance = LinkClass::DISTANCE_UNSPECIFIED;
};

// A lone transfer.
struct SendCost {
  int32_t pair = 0;
  double bytes = 0;  // that the links carry
};

class Fold;  // sim/fold.h

// What a flow is for, where one GPU stands for several: a pair of ranks, a
// group of GPUs, a GPU and its host. What a and b are depends on the kind.
struct FoldRole {
  enum class Kind : uint8_t {
    kSend,          // from rank a to rank b
    kTensor,        // the tensor group of rank a
    kExperts,       // those of rank a that share out experts
    kCopies,        // the a-th of Traffic::copies
    kExpertCopies,  // of these, who has the same experts
    kTied,          // ranks a and b
    kToHost,        // of rank a
    kFromHost,
  };
  Kind kind = Kind::kSend;
  int32_t a = 0, b = 0;
  // Among the representatives; of a group the first.
  int32_t replica = 0, tensor_rank = 0;

  bool operator==(const FoldRole&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const FoldRole& role) {
    return H::combine(std::move(h), role.kind, role.a, role.b, role.replica,
                      role.tensor_rank);
  }
};

// The pairs of GPUs that send, and the ways between them.
class Ways {
 public:
  // With a model of collectives, a collective that has its links for itself
  // takes exactly what the model says. Without (null): rings at the full rate
  // of the links, each step after a hop's latency.
  // Sends take what `links` has measured of their distance; null: nothing.
  // With a fold the pairs are those of its colours; without (null) roles do not
  // matter.
  Ways(const Network& network, const CollectiveModel* model,
       const DeviceProfile* links, TaskGraph* tasks, const Fold* fold = nullptr)
      : network_(network),
        model_(model),
        links_(links),
        tasks_(tasks),
        fold_(fold) {}

  // Of what is added from here on.
  void set_role(CallRole role) { role_ = role; }
  // All that were added, in the order of their first; none without a model.
  std::vector<CollectiveCall> TakeCalls() { return std::move(calls_); }

  const Route& RouteOf(int from, int to);
  // A transfer of `bytes` over links, after the latency and `extra_seconds`.
  // REQUIRES: the two are joined by links.
  SendCost SendBetween(int from, int to, double bytes, double extra_seconds,
                       const FoldRole& role = {});
  // A GPU and its host's memory; -1 where they are not joined.
  int32_t HostPairOf(int gpu, bool to_host, const FoldRole& role = {});
  Group GroupOf(const std::vector<int>& gpus, const FoldRole& role = {});

  // Adds collectives from the end of `before` to the timer `after`, which they
  // lengthen by the latencies. Every hop carries the bytes of all steps at once
  // (measured equal to the single steps, which cost n times as many flows).
  void AddCollectives(const Group& group,
                      std::span<const Collectives> collectives, int32_t before,
                      int32_t after);
  void AddCollectives(const Group& group, const Collectives& collectives,
                      int32_t before, int32_t after) {
    AddCollectives(group, {&collectives, 1}, before, after);
  }

  // With a fold: what they take from the end of a task to the end of another,
  // as flows, then latencies; alone, or nothing where others cross their links.
  struct LoneSeconds {
    double hop_latency = 0;  // of the flows before they move
    double flow = 0, latency = 0;
  };
  std::optional<LoneSeconds> LoneSecondsOf(
      const Group& group, std::span<const Collectives> collectives) const;
  // Counts them as AddCollectives does.
  void CountCalls(const Group& group, std::span<const Collectives> collectives);

  // Where the hops of groups in a node have links that nobody else uses, all
  // hops carry the same at the same time: one of them stands for all. Call
  // once, after the last flow was added; changes no time.
  void FoldHops();

  // Which GPUs each pair's flows touch. Call after FoldHops.
  std::vector<Slowdowns::Touch> Touches() const;

  // What each GPU of the cluster is in, of what was added.
  std::vector<CommunicatorCounts> CountCommunicators() const;

  // What they take when nobody else uses the links.
  double SecondsAlone(const Group& group,
                      std::span<const Collectives> collectives) const;

  // What all of them together put on the links, and their latencies beyond the
  // hops' own.
  struct Load {
    double intra_bytes = 0, inter_bytes = 0;  // of each hop
    double latency_seconds = 0;
  };
  Load LoadOf(const Group& group,
              std::span<const Collectives> collectives) const;

 private:
  void AddLoad(const Group& group, const Collectives& collectives,
               Load* load) const;
  void CountCall(
      const Collectives& collectives, const CollectiveGroup& group,
      LinkClass::Distance distance = LinkClass::DISTANCE_UNSPECIFIED);
  LinkClass::Distance DistanceBetween(int from, int to) const;
  // Transfers go over the pair from one GPU to the other.
  SendCost SendOver(int32_t pair, int from, int to, double bytes);
  // Index into TaskGraph::pairs of flows with this latency.
  int32_t PairOf(int from, int to, double latency_seconds);
  int32_t FoldedPairOf(int32_t colour, double latency_seconds);
  int32_t SendPairOf(int from, int to, double latency_seconds,
                     const FoldRole& role);
  Group FoldedGroupOf(const FoldRole& role);
  // As it calls its members, for memory.
  int32_t CommunicatorOf(std::vector<int> gpus, const Group& group);
  // Largest time that a link needs for one byte over every hop of these rings.
  double SecondsPerByteOf(const std::vector<Ring>& rings);
  void SetLinks(const std::vector<int>& gpus, Group* group);
  void SetWires(Group* group) const;

  const Network& network_;
  const CollectiveModel* model_;
  mutable CallPrices prices_;
  const DeviceProfile* links_;
  TaskGraph* tasks_;
  const Fold* fold_;
  CallRole role_ = CallRole::kTensor;
  std::vector<CollectiveCall> calls_;
  // Role, kind, bytes, ranks, ranks in a node, rates: index into calls_.
  absl::flat_hash_map<std::tuple<CallRole, CollectiveKind, double, int, int,
                                 double, double, LinkClass::Distance>,
                      size_t>
      call_index_;
  // The hops of groups in a node, and the first flows of their collectives.
  struct HopSet {
    std::vector<int32_t> hops;
    std::vector<int32_t> first_flows;
  };
  bool CarryAlike(const HopSet& set, const std::vector<int64_t>& pair_flows,
                  const std::vector<int32_t>& link_pairs) const;

  // SimGrid knows one latency between two hosts: a GPU has one host for each
  // latency that its flows have.
  std::vector<double> latencies_;
  absl::flat_hash_map<std::tuple<int, int, int>, int32_t> pair_index_;
  absl::node_hash_map<std::pair<int, int>, Route> routes_;
  std::vector<HopSet> hop_sets_;
  std::vector<size_t> folded_;  // indices into hop_sets_
  // By their GPUs, ascending: what was called over them.
  struct Communicator {
    bool across_nodes = false, nvls = false;
    bool collectives = false, pairs = false;
  };
  std::vector<Communicator> communicators_;
  absl::flat_hash_map<std::vector<int>, int32_t> communicator_index_;
  // From GPU to GPU, by pair: transfers go over it. -1: none.
  std::vector<std::pair<int32_t, int32_t>> sends_;
  std::vector<int32_t> pair_colours_;  // [pair], with a fold
  absl::flat_hash_map<std::vector<int32_t>, int32_t> hop_set_index_;
};

}  // namespace weir

#endif  // WEIR_SIM_GROUPS_H_
