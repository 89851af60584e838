// SPDX-License-Identifier: Apache-2.0
// Puts a pipeline graph together, one kind of task after the other. For
// BuildPipelineGraph only.
#ifndef WEIR_SIM_GRAPH_BUILDER_H_
#define WEIR_SIM_GRAPH_BUILDER_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "schedules/dependencies.h"
#include "sim/pipeline_graph.h"
#include "sim/rings.h"

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

  // Which updates are reduced. Where all copies of a stage are one GPU each,
  // nothing is; copies in one pipeline wait for each other even if their
  // gradients weigh nothing, since the next forward reads what all have made.
  void SelectReductions();
  void AddActions();

  // Over the cluster's PCIe where there is some: a flow that shares it.
  void AddOffload(int gpu, const Action& action, double seconds);

  struct Collective {
    double bytes = 0;
    int count = 0;
  };
  Collective CollectiveOf(const Action& action) const;
  void AddTensorCollectives();

  // The collectives of both follow the pair, so that it ends as one.
  void AddPairCollective(int first, size_t i, const RingSet& rings,
                         int32_t end);
  void AddCollective(int first, size_t i, const RingSet& rings,
                     const Collective& collective,
                     std::initializer_list<int32_t> ends);

  // Steps that take no time and follow no reduction are left out.
  void AddSteps();
  void AddReductions();
  RingSet RingsOverCopies(const std::vector<int>& ranks, int t);

  // Without rings nothing moves: the copies only wait for each other.
  void AddReduction(const Reduction& reduction, int t, int32_t index,
                    const RingSet* rings, int32_t* last);

  // Every GPU computes its passes and steps one after the other.
  void AddStreams();

  // Offloads and reloads: each channel in its order, after the computation
  // before it in the rank's; and whatever waits for one.
  void AddChannels();
  void FindHostWaits();

  // The weights of the run under way and of the next one are there: a gather
  // starts when the run before the last has ended.
  void AddGathers();
  void AddTransfers();

  // What an action makes goes to the next stage, an input gradient to the stage
  // before; all microbatches of the action at once.
  void AddTransfer(int sender, int32_t produced, const Action& action);

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
  const bool blocking_;
  const Dependencies dependencies_;
  bool has_channels_ = false;  // does any rank offload?
  bool has_pairs_ = false;     // overlap passes?
  PipelineGraph graph_;
  Ways ways_;
};

}  // namespace weir

#endif  // WEIR_SIM_GRAPH_BUILDER_H_
