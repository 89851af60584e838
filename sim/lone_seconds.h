// SPDX-License-Identifier: Apache-2.0
// What passes and transfers of the first replica take at least: as if nobody
// else used their links; with a fold nobody but those that provably do the same
// at the same time, and so share them.
#ifndef WEIR_SIM_LONE_SECONDS_H_
#define WEIR_SIM_LONE_SECONDS_H_

#include <optional>
#include <span>
#include <vector>

#include "sim/fold.h"
#include "sim/groups.h"
#include "sim/pass_order.h"
#include "sim/pipeline_graph.h"

namespace weir {

class LoneSeconds {
 public:
  // `inputs` have everybody; the fold, of the same, may be null.
  LoneSeconds(const PipelineInputs& inputs, const Fold* fold);

  // With what is called inside it, and not before its host has launched it.
  double OfPass(const PassKind& kind);
  // What it adds at least to a pair that it is part of: what the host launches
  // and what hides behind kernels may hide behind the other's.
  double OfShare(const PassKind& kind);
  double OfHop(const HopKind& hop);
  // Of it how long its links are taken.
  double OfMove(const HopKind& hop);
  // All steps of a rank, and that of one stage: the first of the rank's or not.
  double OfSteps(int rank) const;
  double OfStep(int rank, int stage, bool first) const;

  // Who communicates over what, of those that the fold leaves.
  Ways& ways() { return ways_; }
  const Route& route(int32_t pair) const { return scratch_.pairs[pair].route; }
  std::span<const Link> links() const {
    return fold_ == nullptr ? in_.network.links() : fold_->links();
  }

 private:
  struct PassParts {
    double kernels = 0, in_line = 0, beside = 0, experts = 0, host = 0;
    // What the simulation takes for the collectives off the host's time: more
    // than in_line and experts where a group's farthest hop is not its slowest.
    double off_host = 0;
  };
  PassParts PartsOf(const PassKind& kind);
  double OfOffload(int rank, const Action& action);
  // A group, and what its hops take with their links shared as said above.
  struct TimedGroup {
    struct Hops {
      double latency_seconds = 0, seconds_per_byte = 0;
    };
    Group group;
    Hops intra, inter;
  };
  TimedGroup Timed(Group group) const;
  std::vector<int> SteppedStages(int rank) const;
  double OfCalls(const TimedGroup& group,
                 const std::vector<Collectives>& calls);
  const TimedGroup& TensorGroup(int rank);
  const TimedGroup& ExpertGroup(int rank);
  double SecondsOver(const Route& route, double bytes) const;
  std::optional<SendCost> SendOf(const HopKind& hop);
  double ExtraSeconds() const {  // of every transfer
    return in_.communication.transfers() == BLOCKING
               ? in_.costs.exchange_seconds
               : 0;
  }

  const PipelineInputs in_;
  const Fold* fold_;
  TaskGraph scratch_;  // of ways_, which adds pairs
  Ways ways_;
  std::vector<std::optional<TimedGroup>> tensors_, experts_;  // [rank]
  std::vector<std::vector<int>> rank_stages_;  // [rank]; empty with a flush
};

}  // namespace weir

#endif  // WEIR_SIM_LONE_SECONDS_H_
