// SPDX-License-Identifier: Apache-2.0
// Communication routes between pairs of GPUs and in groups of GPUs, and their
// collectives as tasks.
#ifndef WEIR_SIM_GRAPH_COMMUNICATION_LOWERING_H_
#define WEIR_SIM_GRAPH_COMMUNICATION_LOWERING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "calibrate/pricing/collective_seconds.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/layer_work.h"
#include "scenarios/cluster/network.h"
#include "sim/costs/call_prices.h"
#include "sim/engine/task_graph.h"
#include "sim/graph/flow_pairs.h"
#include "sim/graph/group.h"
#include "sim/graph/representatives.h"

namespace weir::sim {

// `count` collectives of `bytes` each, one after another.
struct Collectives {
  models::CollectiveKind kind = models::CollectiveKind::kAllReduce;
  double bytes = 0;
  double count = 1;
  models::TokenRouting routing = {};  // of an all-to-all of tokens by DeepEP
};

// The purpose of calls that are priced together. Unlike
// Timeline.Collectives.Kind, it includes transfers, and tied embeddings count
// as reductions.
enum class CallPurpose {
  kTensor,
  kExpert,
  kReduction,
  kGather,
  kTransfer,
  kContext
};

// Equal collectives of the whole run, priced by the model.
struct CollectiveCall {
  CallPurpose purpose = CallPurpose::kTensor;
  models::CollectiveKind kind = models::CollectiveKind::kAllReduce;
  double bytes = 0;
  calibrate::CollectiveGroup group;
  double count = 0;
  models::TokenRouting routing = {};
  // For transfers between GPUs at this distance, if the profile has measured
  // them.
  LinkClass::Distance distance = LinkClass::DISTANCE_UNSPECIFIED;
};

// The total load of several collectives on the links, and their latencies
// beyond those of the hops.
struct CollectiveLoad {
  double intra_bytes = 0, inter_bytes = 0;  // per hop, not rounded
  double latency_seconds = 0;
};

// Collectives with their load on the links of a group, for passes that repeat
// them: looking up prices takes longer than adding tasks.
struct PricedCollectives {
  std::vector<Collectives> calls;
  CollectiveLoad load;
  double seconds_alone = 0;
  // Indices of the calls that are counted; empty until they are first added.
  std::vector<size_t> counted = {};

  bool empty() const { return calls.empty(); }
};

// An uncontended transfer.
struct SendCost {
  int32_t pair = 0;
  double bytes = 0;            // on the links
  double latency_seconds = 0;  // before that
};

// Uncontended messages to the next GPU of a ring, one after another.
struct RingCost {
  int32_t pair = -1;           // -1: no link is used
  double bytes = 0;            // of all messages
  double latency_seconds = 0;  // of all but the first
};

// The pairs of GPUs that send, and the routes between them.
class CommunicationLowering {
 public:
  // If `model` is not null, an uncontended collective takes exactly the time of
  // the model; if null, rings run at the full rate of the links, with a hop's
  // latency per step. Sends take the times that `links` has measured for their
  // distance; `links` may be null. All GPUs are in the graph: roles are
  // ignored.
  CommunicationLowering(const scenarios::Network& network,
                        const CollectiveModel* model,
                        const DeviceProfile* links, TaskGraph* tasks);
  // The same with these GPUs in the graph.
  CommunicationLowering(const scenarios::Network& network,
                        const CollectiveModel* model,
                        const DeviceProfile* links, TaskGraph* tasks,
                        const Representatives& gpus);
  CommunicationLowering(const CommunicationLowering&) = delete;
  CommunicationLowering& operator=(const CommunicationLowering&) = delete;

  // Sets the purpose of everything that is added from here on.
  void set_purpose(CallPurpose purpose) { purpose_ = purpose; }
  // Returns all calls in the order of their first occurrence; empty without a
  // model or measured links.
  std::vector<CollectiveCall> ReleaseCollectives() { return std::move(calls_); }

  const scenarios::Route& RouteOf(int from, int to) {
    return routes_.Of(from, to);
  }
  // Returns one of `count` transfers of `bytes` over links, after the latency
  // and `extra_seconds`. Requires: the two GPUs are joined by links.
  SendCost SendBetween(int from, int to, double bytes, double extra_seconds,
                       const InstanceRole& role = {}, double count = 1);
  RingCost RingOver(const RingHop& hop, std::span<const Collectives> messages);
  // Returns the pair of a GPU and its host's memory; -1: not joined by links.
  int32_t HostPairOf(int gpu, bool to_host, const InstanceRole& role = {}) {
    return pairs_->OfHost(gpu, to_host, role);
  }
  Group GroupOf(const std::vector<int>& gpus, const InstanceRole& role = {});

  // Returns the collectives with their load and their uncontended time.
  PricedCollectives Price(const Group& group,
                          std::span<const Collectives> calls) const;

  // Adds collectives from the end of `before` to the timer `after`, which
  // becomes longer by the latencies. Every hop carries the bytes of all steps
  // at once (measured to be equal to single steps, which need n times as many
  // flows). Requires: `collectives` are priced for this group, and all of its
  // calls have the same purpose.
  void AddCollectives(const Group& group, PricedCollectives* collectives,
                      int32_t before, int32_t after);
  void AddCollectives(const Group& group,
                      std::span<const Collectives> collectives, int32_t before,
                      int32_t after) {
    PricedCollectives priced = Price(group, collectives);
    AddCollectives(group, &priced, before, after);
  }
  void AddCollectives(const Group& group, const Collectives& collectives,
                      int32_t before, int32_t after) {
    AddCollectives(group, {&collectives, 1}, before, after);
  }

  // Adds the messages of a ring in the same way, in all hops at once.
  void AddRing(std::span<const RingHop> hops,
               std::span<const Collectives> messages, int32_t before,
               int32_t after);

  // The uncontended time of collectives between two tasks: flows followed by
  // latencies. UncontendedSecondsOf returns nullopt if other flows may use the
  // same links, which is always possible if the graph contains all GPUs.
  struct UncontendedSeconds {
    double hop_latency = 0;  // before the flows move bytes
    double flow = 0, latency = 0;
  };
  std::optional<UncontendedSeconds> UncontendedSecondsOf(
      const Group& group, const PricedCollectives& collectives) const;
  // Counts the collectives for CountCommunicators without adding them.
  void CountCollectives(const Group& group, PricedCollectives* collectives);

  // Keeps a single flow for all hops of a group in a node if nothing else uses
  // their links, since all of them then carry the same bytes at the same time.
  // Call once, after the last flow was added. Does not change times.
  void MergeHops() { pairs_->MergeHops(); }

  // Returns the GPUs that each pair's flows touch. Call after MergeHops.
  std::vector<Slowdowns::Touch> Touches() const { return pairs_->Touches(); }

  // Returns the communicators of each GPU of the cluster that the collectives
  // added so far need.
  std::vector<calibrate::CommunicatorCounts> CountCommunicators() const;

  // Returns the uncontended time of the collectives.
  double SecondsAlone(const Group& group,
                      std::span<const Collectives> collectives) const;

  CollectiveLoad LoadOf(const Group& group,
                        std::span<const Collectives> collectives) const;

 private:
  void AddLoad(const Group& group, const Collectives& collectives,
               CollectiveLoad* load) const;
  // Returns the uncontended time of this load.
  double SecondsOf(const Group& group, const CollectiveLoad& load) const;
  // Returns the index of the call; std::nullopt: it is not counted.
  std::optional<size_t> CountCall(
      const Collectives& collectives, const calibrate::CollectiveGroup& group,
      LinkClass::Distance distance = LinkClass::DISTANCE_UNSPECIFIED);
  LinkClass::Distance DistanceBetween(int from, int to) const;
  // Records and returns a transfer from one GPU to the other.
  SendCost SendOver(int from, int to, double bytes, double latency_seconds,
                    const InstanceRole& role);
  // Returns the index of the communicator of these GPUs, for memory.
  int32_t CommunicatorOf(std::vector<int> gpus, const Group& group);

  const scenarios::Network& network_;
  const CollectiveModel* model_;
  mutable CallPrices prices_;
  const DeviceProfile* links_;
  TaskGraph* tasks_;
  RouteCache routes_;
  const std::unique_ptr<FlowPairs> pairs_;
  CallPurpose purpose_ = CallPurpose::kTensor;
  std::vector<CollectiveCall> calls_;
  // Index into calls_ by purpose, kind, bytes, ranks, ranks in a node, rates,
  // distance, and tokens, experts and direction of a routing.
  absl::flat_hash_map<
      std::tuple<CallPurpose, models::CollectiveKind, double, int, int, double,
                 double, LinkClass::Distance, double, double, bool>,
      size_t>
      call_index_;
  // The kinds of calls over a set of GPUs.
  struct Communicator {
    bool across_nodes = false, nvls = false;
    bool collectives = false, pairs = false;
  };
  std::vector<Communicator> communicators_;
  absl::flat_hash_map<std::vector<int>, int32_t> communicator_index_;
  // [pair]: the GPUs of the transfers over it, from and to; -1: none.
  std::vector<std::pair<int32_t, int32_t>> sends_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_COMMUNICATION_LOWERING_H_
