// SPDX-License-Identifier: Apache-2.0
// Lower bounds for every order of the same stages on the same ranks, from the
// paths of single microbatches through the stages and the sum of each rank's
// passes. Orders that overlap forwards with backwards are covered only if the
// given order does so.
#ifndef WEIR_SIM_BOUNDS_ORDER_FREE_BOUND_H_
#define WEIR_SIM_BOUNDS_ORDER_FREE_BOUND_H_

#include <span>
#include <vector>

#include "sim/bounds/uncontended_costs.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

class OrderFreeBound {
 public:
  // `step_seconds`: the time of each rank's steps after its passes, by rank.
  OrderFreeBound(const PipelineInputs& inputs, UncontendedCosts* seconds,
                 std::span<const double> step_seconds);

  // Returns the bound on the run with a flush, on a batch without one.
  double seconds() const { return seconds_; }
  // Returns the time of all passes of a batch. Without a flush: of the batch in
  // which the rank does the least work, since routes alternate from one batch
  // to the next.
  double WorkOf(int rank) const;
  // Returns the number of microbatches of the first batch that take this route.
  int NumMicrobatches(int route) const;
  // The numbers of microbatches that an action spans, ascending.
  const std::vector<int>& spans() const { return spans_; }

  // With a flush, return lower bounds from the start of the run: when the last
  // pass of a rank ends, and when the last pass that computes weight gradients
  // of its stage begins.
  double EndOfPasses(int rank) const;
  double StartOfLastGradient(int rank, int stage) const;
  // Lower bounds around a transfer from a stage to its neighbor on the route:
  // the seconds before it can begin, and those from its end to the end of the
  // run.
  struct HeadTail {
    double before_seconds = 0, after_seconds = 0;
  };
  HeadTail TransferHeadTail(int route, int stage, bool forward) const;
  // The same for any replica with the same devices, wherever its GPUs are: as
  // if other transfers took no time. Requires: no collectives inside passes.
  HeadTail TransferHeadTailAnywhere(int route, int stage, bool forward) const;

 private:
  // Times in seconds.
  struct Rank {
    double work = 0;     // all passes of a batch; without a flush, the mean
    double weights = 0;  // the part of it for weight gradients
    double least_input;  // shortest input gradient
    // Shortest paths of a microbatch to it, and of its input gradient from it
    // to the first stage (in inference, of its output to the last stage).
    double before_seconds, after_seconds;
    int first_stage;
    // Sends before its last pass: with blocking transfers it does nothing else
    // while it sends.
    double sends = 0;
    bool pairs = false;  // overlapped forwards and backwards may be shorter
  };
  struct Part {  // a stage on one rank of one route
    int rank, stage;
    double count;                   // microbatches, see MeanMicrobatches
    double forward, gradients = 0;  // seconds of one microbatch
    double last = 0;                // longest final pass
  };
  struct MicrobatchPath {  // path of one microbatch; [stage]
    std::vector<double> forward_ends, after_seconds, hops, hops_back, inputs;
    double seconds = 0;
  };

  // Returns the microbatches of a batch that take this route; without a flush,
  // the mean.
  double MeanMicrobatches(int route) const;
  PassKind KindOf(int rank, schedules::Op op, int stage, int route,
                  int span) const;
  double OfPass(int rank, schedules::Op op, int stage, int route, int span);
  // Returns the minimum time that it adds to the sum of the rank's passes.
  double InSum(int rank, schedules::Op op, int stage, int route, int span);
  void AddRoute(int route);
  void AddPathsOut(int route, const std::vector<double>& forwards);
  double AddBackward(Part* part, int route);
  void SetPaired(int rank);
  void AddSends();
  double Longest() const;
  // Returns the time of the steps after the last pass of the first stage's
  // rank.
  double LastSteps(int route) const {
    const int rank = schedule_.routes[route][0];
    return schedule_.forward_only ? 0 : step_seconds_[rank];
  }
  // Returns the end of all passes except weight gradients.
  double EndOfInputs(const Rank& rank) const {
    return rank.before_seconds + rank.work - rank.weights + rank.sends;
  }

  const PipelineInputs& in_;
  const schedules::Schedule& schedule_;
  UncontendedCosts& uncontended_;
  const std::span<const double> step_seconds_;
  bool has_pairs_ = false;
  std::vector<int> spans_;
  std::vector<Rank> ranks_;
  std::vector<Part> parts_;
  std::vector<MicrobatchPath> paths_;  // [route]
  double seconds_ = 0;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_BOUNDS_ORDER_FREE_BOUND_H_
