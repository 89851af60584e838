// SPDX-License-Identifier: Apache-2.0
// Puts a pipeline graph together, one kind of task after the other. For
// BuildPipelineGraph only.
#ifndef WEIR_SIM_GRAPH_BUILDER_H_
#define WEIR_SIM_GRAPH_BUILDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "schedules/dependencies.h"
#include "sim/fold.h"
#include "sim/groups.h"
#include "sim/pass_calls.h"
#include "sim/pipeline_graph.h"

namespace weir {

class GraphBuilder {
 public:
  explicit GraphBuilder(const PipelineInputs& inputs);

  PipelineGraph Build();

 private:
  const std::vector<Action>& Actions(int gpu) const {
    return schedule_.rank_actions[graph_.rank_of(gpu)];
  }

  // Both of an overlapped pair start when both can: what one waits for, the
  // other does too.
  void AddEdgeTo(int32_t before, int gpu, int32_t position);
  void AddEdgeToStart(int32_t before, int32_t task);
  // Both of a pair end together.
  void AddEdgeToEnd(int32_t before, int gpu, int32_t position);

  // Which updates are reduced. Where all copies of a stage are one GPU each,
  // nothing is; copies in one pipeline wait for each other even if their
  // gradients weigh nothing, since the next forward reads what all have made.
  void SelectReductions();
  void ReserveTasks();  // of large graphs, which copying would make slow
  void AddActions();

  // Over the cluster's PCIe where there is some: a flow that shares it.
  void AddOffload(int gpu, const Action& action, double seconds);

  // Ends of passes: behind their collectives, and not before the host has
  // launched it all.
  void AddPassEnds();
  bool CallsExperts() const;
  // The GPUs that run one pass together: one tensor group, or as many as share
  // out experts.
  struct PassGroup {
    std::vector<int> firsts;     // [replica] first GPU of the tensor group
    std::vector<Group> tensors;  // [replica], empty without tensor parallelism
    std::vector<Group> experts;  // [tensor rank], empty without experts
  };
  // Of a folded graph, where nobody else is on the tensor groups' links: passes
  // as timers that take their collectives along. False: it cannot be.
  bool MergePassesWithCollectives();
  std::optional<double> MergedSeconds(const PassGroup& group, size_t position,
                                      PassCalls* collectives);
  PassGroup PassGroupOf(int rank, int replica, bool experts);
  void AddEndOf(const PassGroup& group, size_t position);
  void AddTensorEnd(const PassGroup& group, size_t replica, int position,
                    const PassCalls& collectives, int32_t end);
  void AddExchange(const PassGroup& group, int position,
                   const std::vector<Collectives>& experts);
  void WaitForHost(const PassGroup& group, size_t position,
                   const PassCalls& collectives);

  // A timer that starts with the passes at `position` of these GPUs: with the
  // last of them.
  int32_t AddBeside(const std::vector<int>& gpus, int position, double seconds);

  // Steps that take no time and follow no reduction are left out.
  void AddSteps();
  void AddReductions();
  // Of a folded graph, whose replicas and tensor ranks are representatives.
  FoldRole RoleOf(FoldRole::Kind kind, int gpu, int other_rank = 0) const {
    return {kind, graph_.rank_of(gpu), other_rank, graph_.replica_of(gpu),
            gpu % place_.tensor};
  }

  // Those of everybody whom the graph's stand for.
  int ReplicaOf(int r) const {
    return in_.fold == nullptr ? r : in_.fold->replicas()[r];
  }
  int TensorRankOf(int t) const {
    return in_.fold == nullptr ? t : in_.fold->tensor_ranks()[t];
  }

  // The copies of a stage on one tensor rank.
  struct Copies {
    Group all;
    std::vector<Group> experts;  // that have the same ones; empty: all do
  };
  const Copies& CopiesOf(const std::vector<int>& ranks, int t);
  // In pieces, as the last backward completes them; the last piece follows it.
  // Where nothing moves the copies only wait for each other.
  void AddReduction(const Reduction& reduction, int t, int32_t index,
                    int32_t* last);
  int32_t AddEarlyPieces(const Reduction& reduction, int t, int32_t index,
                         const Copies& copies, const ReductionCalls& calls,
                         int32_t last);
  // Of both, one after the other.
  void AddPiece(const Copies& copies, const ReductionCalls& calls,
                int32_t start, int32_t end);
  // The new weights, behind the steps that made the parts of them.
  void GatherSteppedWeights(int rank, int step, int t);
  // Gradients of an embedding that the first and the last stage have.
  void AddTiedReductions();
  int32_t StepOfStage(int rank, int stage) const;
  void AddTiedReduction(int replica, int t, const int (&ranks)[2],
                        const int32_t (&steps)[2]);

  // Every GPU computes its passes and steps one after the other.
  void AddStreams();

  // graph_slowdowns.cc. Passes run slower while flows move data on their GPUs,
  // passes and steps while other parts of their cards compute.
  void AddSlowdowns();
  void SlowPasses(int gpu);
  void SlowSteps(int gpu);
  void AddCards();
  // Of a pass, or of both of an overlapped pair.
  int32_t CurveOf(int gpu, const Action& action);
  int32_t AddCurve(std::vector<double> curve);

  // Offloads and reloads: each channel in its order, after the computation
  // before it in the rank's; and whatever waits for one.
  void AddChannels();
  void FindHostWaits();

  // The weights of the run under way and of the next one are there: a gather
  // starts when the run before the last has ended. The first layer's come
  // before the run, the others' beside its first pass.
  void AddGathers();
  // The first passes of both runs are a pair: it waits for both first layers,
  // and no layer that comes beside it may come before them.
  bool StartsWithTheOneBefore(int rank, int32_t run) const;
  // Returns the gather of its other layers.
  CollectiveSpan AddGather(const Group& group, int rank, int t, int32_t i,
                           int32_t start, int32_t end);
  void AddTransfers();

  // What an action makes goes to the next stage, an input gradient to the stage
  // before; all microbatches of the action at once.
  void AddTransfer(int sender, int32_t produced, const Action& action);

  // Where a pipeline infers, what a stage sends waits for room at the next, and
  // a stage for room to put what it makes: else a fast stage runs ahead of a
  // slow one for as long as there is input. Only where all ranks take
  // microbatches in the same order, which cannot block for ever.
  bool HasQueues() const;
  void AddQueue(int sender, int32_t produced, int receiver, int32_t consumed,
                int32_t transfer);

  // What one GPU sends to another goes through one queue, in the order in which
  // it was computed. (Hops of pure latency occupy nobody.)
  void QueueTransfers();

  // Both ends must have come to the exchange, and leave it together.
  void AddPairing(int sender, int32_t produced, int receiver, int32_t consumed,
                  int32_t transfer);

  // To what a GPU computes right after an action: a step, a pass, nothing.
  void AddEdgeToNext(int32_t before, int gpu, int32_t position);

  const PipelineInputs& in_;
  const Schedule& schedule_;
  const Placement& place_;
  const Placement& everybody_;  // whom those of place_ stand for
  const bool blocking_;
  const Dependencies dependencies_;
  const bool has_queues_;
  bool has_channels_ = false;  // does any rank offload?
  bool has_pairs_ = false;     // overlap passes?
  PipelineGraph graph_;
  Ways ways_;
  absl::node_hash_map<std::pair<std::vector<int>, int>, Copies> copies_;
  std::vector<int32_t> last_step_gather_;               // [rank]
  std::map<std::vector<double>, int32_t> curve_index_;  // of Slowdowns::curves
  // Tasks that start when a pass does: lists, the first by the pass's task,
  // where they end the number of what is none.
  struct Beside {
    int32_t task, next;
  };
  std::vector<int32_t> first_beside_;  // empty without any
  std::vector<Beside> beside_;
};

}  // namespace weir

#endif  // WEIR_SIM_GRAPH_BUILDER_H_
