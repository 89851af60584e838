// SPDX-License-Identifier: Apache-2.0
// Builds a pipeline graph, one kind of task after the other. For
// BuildPipelineGraph only.
#ifndef WEIR_SIM_GRAPH_GRAPH_BUILDER_H_
#define WEIR_SIM_GRAPH_GRAPH_BUILDER_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "schedules/dependencies.h"
#include "sim/graph/communication_lowering.h"
#include "sim/graph/pass_collectives.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/graph/replica_groups.h"

namespace weir::sim {

class GraphBuilder {
 public:
  explicit GraphBuilder(const PipelineInputs& inputs);

  PipelineGraph Build();

 private:
  const std::vector<schedules::Action>& Actions(int gpu) const {
    return schedule_.rank_actions[graph_.rank_of(gpu)];
  }

  // Adds an edge to the start of an action. Both actions of an overlapped pair
  // start when both can, so they share their predecessors.
  void AddEdgeTo(int32_t before, int gpu, int32_t position);
  void AddEdgeToStart(int32_t before, int32_t task);
  // Adds an edge to the end of an action and of its pair: both end together.
  void AddEdgeToEnd(int32_t before, int gpu, int32_t position);

  // Selects the updates that are reduced: those of stages with several copies.
  // Selects none if gradients are empty, unless copies of a stage are in one
  // pipeline without flush: these wait for each other, since the next forward
  // reads the updates of all of them.
  void SelectReductions();
  void ReserveTasks();  // for large graphs: reallocation is slow
  void AddActions();

  // Adds a flow over the cluster's PCIe if it has any, else a timer.
  void AddOffload(int gpu, const schedules::Action& action, double seconds);

  // Adds the ends of passes. A pass ends after its collectives, and not before
  // the host has launched all of its kernels.
  void AddPassEnds();
  bool HasExpertCollectives() const;
  // Returns the number of replicas that run passes together.
  int ReplicasOfPass() const;
  // The GPUs that run one pass together: one tensor group, or the tensor groups
  // across which experts or sequences are sharded.
  struct PassGroup {
    std::vector<int> firsts;     // [replica] first GPU of the tensor group
    std::vector<Group> tensors;  // [replica], empty without tensor parallelism
    std::vector<Group> experts;  // empty without experts
    // Empty if tensor groups share experts.
    std::vector<Group> expert_tensors;
    std::vector<Group> context;  // empty without context-parallel neighbors
    std::vector<RingHop> ring;   // empty without a context-parallel ring
  };
  // The collectives of a pass or of an overlapped pair, by group.
  struct PassCalls {
    std::vector<PricedCollectives> in_line, overlapped;  // of tensor groups
    std::vector<PricedCollectives> experts, expert_tensor, context;
    std::vector<Collectives> ring;
  };
  // Calls of passes that differ only in their microbatches. The key has
  // operation, stage and number of microbatches of one or two actions.
  using PassKey = std::array<int, 6>;
  using KnownCalls = absl::flat_hash_map<PassKey, std::unique_ptr<PassCalls>>;
  PassKey KeyOf(const PassGroup& group, size_t position) const;
  // Returns the calls of the pass, which are priced the first time.
  PassCalls& CallsOf(const PassGroup& group, size_t position,
                     KnownCalls* known) const;
  // Turns passes of a reduced graph into timers that include their collectives
  // if no other flow is on the tensor groups' links. Returns false if it is
  // impossible.
  bool MergePassesWithCollectives();
  std::optional<double> MergedSeconds(const PassGroup& group, size_t position,
                                      const PassCalls& calls);
  PassGroup PassGroupOf(int rank, int replica);
  // Adds the groups of `size` consecutive replicas of a rank that begin in
  // [replica, replica + ReplicasOfPass()), for each tensor rank.
  void AddReplicaGroups(InstanceRole::Kind kind, int size, int rank,
                        int replica, std::vector<Group>* groups);
  void AddEndOf(const PassGroup& group, size_t position, PassCalls* calls);
  void AddTensorEnd(const PassGroup& group, size_t replica, int position,
                    PassCalls* calls, int32_t end);
  void AddExchange(const PassGroup& group, int position, PassCalls* calls);
  // Returns true if the exchanges of experts of this action and the next
  // overlap with the kernels of both.
  bool HidesExchange(const schedules::Action& action) const;
  // Adds to the kernels of a pair what they lose to the multiprocessors of its
  // exchanges: a part s of them for E seconds, s x E seconds.
  void TakeMultiprocessors(const PassGroup& group, int position,
                           const PassCalls& calls);
  // Adds the groups of experts that run passes with these replicas.
  void AddExpertGroups(int rank, int replica, PassGroup* group);
  // Adds the exchanges of keys and values: those that nothing overlaps follow
  // the kernels, and messages of a ring run during the attention.
  void AddContext(const PassGroup& group, int position, PassCalls* calls);
  int32_t AddRing(const PassGroup& group, int position,
                  const std::vector<Collectives>& messages);
  std::vector<int> GpusOf(const PassGroup& group) const;
  void WaitForHost(const PassGroup& group, size_t position,
                   const PassCalls& calls);

  // Adds a timer that starts with the last of the passes at `position` of these
  // GPUs.
  int32_t AddOverlapped(const std::vector<int>& gpus, int position,
                        double seconds);

  // Adds optimizer steps, unless they take no time and follow no reduction.
  void AddSteps();
  void AddReductions();
  // For a reduced graph, whose replicas and tensor ranks are representatives.
  InstanceRole RoleOf(InstanceRole::Kind kind, int gpu,
                      int other_rank = 0) const {
    return {kind, graph_.rank_of(gpu), other_rank, graph_.replica_of(gpu),
            gpu % place_.tensor};
  }

  // The copies of a stage on one tensor rank.
  struct Copies {
    std::vector<Group> all;      // several with hybrid sharding
    std::vector<Group> experts;  // with the same experts; empty: all have them
    std::vector<Group> shards;   // with the same shards; empty: no others
  };
  const Copies& CopiesOf(const std::vector<int>& ranks, int t);
  // Adds a reduction in pieces, as the last backward completes them; the last
  // piece follows it. Without bytes, the copies only wait for each other.
  void AddReduction(const Reduction& reduction, int t, int32_t index,
                    int32_t* last);
  int32_t AddEarlyPieces(const Reduction& reduction, int t, int32_t index,
                         const Copies& copies,
                         const ReductionCollectives& calls, int32_t last);
  // Adds the collectives of all weights but experts, those of experts, and
  // those between groups of hybrid sharding, in this order. Groups of experts
  // whose members have several tensor ranks follow those of all tensor ranks.
  void AddPiece(const Copies& copies, const ReductionCollectives& calls,
                int32_t start, int32_t end);
  // Adds the gather of the new weights after the steps that updated their
  // shards.
  void GatherSteppedWeights(int rank, int step, int t);
  // Adds the gather of the weights that the previous step updated. The first
  // forward pass of the stage waits for the first bucket, the next action of
  // the rank for all.
  void GatherBeforeForward(int rank, int step, int t);
  // Adds the gradient sums of an embedding that is tied between the first and
  // another stage.
  void AddTiedReductions();
  int32_t StepOfStage(int rank, int stage, int update) const;
  void AddTiedReduction(int replica, int t, const int (&ranks)[2],
                        const int32_t (&steps)[2]);

  // Adds collectives of each of the groups.
  void AddToAll(const std::vector<Group>& groups,
                std::span<const Collectives> calls, int32_t start, int32_t end);
  // Adds the collectives of experts whose groups span all tensor ranks. Every
  // tensor rank calls this in the same order, and all share one collective.
  void AddSharedExperts(const Copies& copies, const Collectives& experts,
                        int32_t start, int32_t end);

  // Makes every GPU compute its passes and steps one at a time.
  void AddStreams();

  // graph_slowdowns.cc. Passes run slower while flows move data on their GPUs,
  // passes and steps while other partitions of their physical GPU compute.
  void AddSlowdowns();
  void SlowPasses(int gpu);
  void SlowSteps(int gpu);
  void AddSharedGpus();
  // Returns the curve of a pass, or of both passes of an overlapped pair.
  int32_t CurveOf(int gpu, const schedules::Action& action);
  int32_t AddCurve(std::vector<double> curve);

  // Orders offloads and reloads: each channel runs in its order, after the
  // preceding computation of the rank. Makes actions wait for them.
  void AddChannels();
  void FindHostWaits();

  // Adds all-gathers of sharded weights. A rank holds the gathered weights of
  // two runs, the current one and the next, so the all-gathers of a run start
  // when the run two before it has ended. The first layer is gathered before
  // the run, the others during its first pass.
  void AddGathers();
  // Returns true if the first passes of this run and the previous one are a
  // pair. The pair waits for both first layers, and no layer that is gathered
  // during it may precede them.
  bool StartsWithTheOneBefore(int rank, int32_t run) const;
  // Returns the gather of the other layers.
  CollectiveSpan AddGather(const Copies& copies, int rank, int t, int32_t i,
                           int32_t start, int32_t end);
  // Adds the gathers of all weights but experts, and then those of experts.
  void AddWeightGathers(const Copies& copies,
                        std::span<const Collectives> dense,
                        std::span<const Collectives> experts, int32_t start,
                        int32_t end);
  void AddTransfers();

  // Adds the transfer of an action's output to the next stage, or of its input
  // gradient to the previous one, for all its microbatches at once.
  void AddTransfer(int sender, int32_t produced,
                   const schedules::Action& action);

  // Returns true if the stages of an inference pipeline have bounded queues: a
  // transfer waits for room at the next stage, and a stage for room for its
  // output. Otherwise a fast stage would run ahead of a slow one as long as
  // there is input. Only if all ranks take microbatches in the same order,
  // which cannot deadlock.
  bool HasQueues() const;
  void AddQueue(int sender, int32_t produced, int receiver, int32_t consumed,
                int32_t transfer);

  // Orders the transfers from one GPU to another as their data is computed.
  // (Hops of pure latency are not queued.)
  void QueueTransfers();

  // Adds the edges of a blocking transfer: it starts when both ends have
  // reached the exchange, and they leave the exchange together.
  void AddPairing(int sender, int32_t produced, int receiver, int32_t consumed,
                  int32_t transfer);

  // Adds an edge to what a GPU computes right after an action: a step, a pass,
  // or nothing.
  void AddEdgeToNext(int32_t before, int gpu, int32_t position);

  const PipelineInputs& in_;
  const schedules::Schedule& schedule_;
  const scenarios::Placement& place_;
  const scenarios::Placement& full_placement_;  // without symmetry reduction
  const bool blocking_;
  const schedules::Dependencies dependencies_;
  const ReplicaGroups groups_;
  const bool has_queues_;
  bool has_channels_ = false;  // some rank offloads
  bool has_pairs_ = false;     // some passes overlap
  PipelineGraph graph_;
  CommunicationLowering lowering_;
  absl::node_hash_map<std::pair<std::vector<int>, int>, Copies> copies_;
  // Reductions of experts whose copies are on several tensor ranks, in the
  // order of AddPiece, and the index of the next one.
  std::vector<CollectiveSpan> shared_experts_;
  size_t next_shared_experts_ = 0;
  std::vector<int32_t> last_step_gather_;               // [rank]
  std::map<std::vector<double>, int32_t> curve_index_;  // by curve
  // Linked lists of the tasks that start together with a pass. The list of a
  // pass starts at first_overlapped_[its task]; kNone ends it.
  struct Overlapped {
    int32_t task, next;
  };
  std::vector<int32_t> first_overlapped_;  // empty if there are none
  std::vector<Overlapped> overlapped_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_GRAPH_BUILDER_H_
