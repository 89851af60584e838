// SPDX-License-Identifier: Apache-2.0
// Lower bounds on passes and transfers of the first replica: as if no other
// flow used their links or, with a symmetry reduction, only flows that
// provably do the same at the same time and therefore share them.
#ifndef WEIR_SIM_BOUNDS_UNCONTENDED_COSTS_H_
#define WEIR_SIM_BOUNDS_UNCONTENDED_COSTS_H_

#include <optional>
#include <span>
#include <vector>

#include "sim/bounds/pass_order.h"
#include "sim/graph/communication_lowering.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/graph/representatives.h"

namespace weir::sim {

class UncontendedCosts {
 public:
  // `inputs` contain all GPUs (no symmetry reduction); `gpus`, of the same run,
  // may be a part of them.
  UncontendedCosts(const PipelineInputs& inputs, const Representatives& gpus);

  // Returns the time of a pass with its collectives; at least its host launch
  // time.
  double OfPass(const PassKind& kind);
  // Returns a lower bound on the time of a pass that may be part of a pair,
  // from its start to its end.
  double OfPassOrPair(const PassKind& kind);
  // Returns the minimum time that a pass adds to an overlapped pair: host
  // launches and collectives that overlap with kernels may be hidden by the
  // other pass.
  double OfShare(const PassKind& kind);
  double OfHop(const HopKind& hop);
  // Returns the part of OfHop during which the links are occupied.
  double OfMove(const HopKind& hop);
  // Return the time of all steps of a rank, and of the step of one stage, which
  // may be the first of the rank's update.
  double OfSteps(int rank) const;
  double OfStep(int rank, int stage, bool first) const;

  // The routes and groups between the representatives.
  CommunicationLowering& lowering() { return lowering_; }
  const scenarios::Route& route(int32_t pair) const {
    return scratch_.pairs[pair].route;
  }
  std::span<const scenarios::Link> links() const { return links_; }

 private:
  // Seconds.
  struct PassParts {
    double kernels = 0, in_line = 0, overlapped = 0, experts = 0, host = 0;
    double context = 0;  // over neighbors
    // Messages of a ring, and the part of the kernels that they overlap with.
    double ring = 0, ring_overlap = 0;
    // Collective time that the simulation subtracts from the host's time. More
    // than in_line and experts if the farthest hop of a group is not its
    // slowest.
    double off_host = 0;
  };
  PassParts PartsOf(const PassKind& kind);
  // `hidden`: exchanges of experts overlap with the kernels.
  double SecondsOf(const PassKind& kind, bool hidden);
  bool HidesExchanges() const {
    return in_.communication.overlap_expert_exchange();
  }
  double OfOffload(int rank, const schedules::Action& action);
  // A group and the times of its hops, with links shared as described above.
  struct TimedGroup {
    struct Hops {
      double latency_seconds = 0, seconds_per_byte = 0;
    };
    Group group;
    Hops intra, inter;
  };
  TimedGroup Timed(Group group) const;
  std::vector<int> SteppedStages(int rank) const;
  double OfCollectives(const TimedGroup& group,
                       const std::vector<Collectives>& calls);
  const TimedGroup& TensorGroup(int rank);
  const TimedGroup& ExpertGroup(int rank);
  const TimedGroup& ExpertTensorGroup(int rank);
  const TimedGroup& ContextGroup(int rank);
  // Returns the group of the first `num_replicas` replicas of a rank.
  TimedGroup ReplicaGroup(int rank, int num_replicas, InstanceRole::Kind kind);
  double OfRing(int rank, const std::vector<Collectives>& messages);
  double SecondsOver(const scenarios::Route& route, double bytes) const;
  std::optional<SendCost> SendOf(const HopKind& hop);
  double ExtraSeconds() const {  // added to every transfer
    return in_.communication.transfers() == BLOCKING
               ? in_.costs.exchange_seconds
               : 0;
  }

  const PipelineInputs in_;
  const std::span<const scenarios::Link> links_;
  TaskGraph scratch_;  // receives the pairs of lowering_
  CommunicationLowering lowering_;
  const Representatives gpus_;
  std::vector<std::optional<TimedGroup>> tensors_, experts_, expert_tensors_,
      context_;                                // [rank]
  std::vector<std::vector<int>> rank_stages_;  // [rank]; empty with a flush
};

}  // namespace weir::sim

#endif  // WEIR_SIM_BOUNDS_UNCONTENDED_COSTS_H_
