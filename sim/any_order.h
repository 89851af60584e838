// SPDX-License-Identifier: Apache-2.0
// What every order of the same stages on the same ranks takes at least: ways of
// single microbatches through the stages, and all passes of a rank. Orders that
// run forwards beside backwards are meant only where the given one does.
#ifndef WEIR_SIM_ANY_ORDER_H_
#define WEIR_SIM_ANY_ORDER_H_

#include <span>
#include <vector>

#include "sim/lone_seconds.h"
#include "sim/pipeline_graph.h"

namespace weir {

class AnyOrder {
 public:
  // `step_seconds`: what each rank does behind its passes.
  AnyOrder(const PipelineInputs& inputs, LoneSeconds* seconds,
           std::span<const double> step_seconds);

  // With a flush of the run, without of a batch.
  double seconds() const { return seconds_; }
  // All passes of a batch. Without a flush: of the batch in which the rank does
  // least, as routes take turns from one batch to the next.
  double WorkOf(int rank) const;
  // Microbatches of the first batch that take this route.
  int NumMicrobatches(int route) const;
  // So many microbatches are done in one piece by some action: ascending.
  const std::vector<int>& spans() const { return spans_; }

  // With a flush, from its start. When the last pass of a rank has ended; when
  // the last one begins that makes weights' gradients of its stage.
  double EndOfPasses(int rank) const;
  double StartOfLastGradient(int rank, int stage) const;
  // What is left of the run when a transfer from a stage to its neighbour on
  // the route is through, and how long after its start one can begin.
  struct Around {
    double before = 0, behind = 0;
  };
  Around AroundHop(int route, int stage, bool forward) const;
  // The same of a replica that has the same devices, wherever they are: as if
  // other transfers took nothing. REQUIRES: no collectives inside passes.
  Around AroundHopAnywhere(int route, int stage, bool forward) const;

 private:
  struct Rank {
    double work = 0;     // all passes of a batch, without a flush on average
    double weights = 0;  // of these, for weights' gradients
    double least_input;  // shortest input gradient
    // Shortest ways of a microbatch to it, and of what it makes back to the
    // first stage (on to the last in inference).
    double before, behind;
    int first_stage;
    // With blocking transfers it does nothing else while it sends: all that
    // comes before its last pass.
    double sends = 0;
    bool pairs = false;  // forwards beside backwards may make it shorter
  };
  struct Part {  // of a stage, on one rank of one route
    int rank, stage;
    double count;                   // microbatches, see MeanMicrobatches
    double forward, gradients = 0;  // of one microbatch
    double last = 0;                // longest last pass
  };
  struct Way {  // of one microbatch; [stage]
    std::vector<double> forward_ends, behind, hops, hops_back, inputs;
    double seconds = 0;
  };

  // Microbatches of a batch that take this route, without a flush on average.
  double MeanMicrobatches(int route) const;
  PassKind KindOf(int rank, Op op, int stage, int route, int span) const;
  double OfPass(int rank, Op op, int stage, int route, int span);
  // What it adds at least to all passes of the rank.
  double InSum(int rank, Op op, int stage, int route, int span);
  void AddRoute(int route);
  void AddWaysOut(int route, const std::vector<double>& forwards);
  double AddBackward(Part* part, int route);
  void SetPaired(int rank);
  void AddSends();
  double Longest() const;
  // Of what the rank of the first stage does behind its last pass.
  double LastSteps(int route) const {
    const int rank = schedule_.routes[route][0];
    return schedule_.forward_only ? 0 : step_seconds_[rank];
  }
  // All passes but those of weights' gradients.
  double EndOfInputs(const Rank& rank) const {
    return rank.before + rank.work - rank.weights + rank.sends;
  }

  const PipelineInputs& in_;
  const Schedule& schedule_;
  LoneSeconds& lone_;
  const std::span<const double> step_seconds_;
  bool has_pairs_ = false;
  std::vector<int> spans_;
  std::vector<Rank> ranks_;
  std::vector<Part> parts_;
  std::vector<Way> ways_;  // [route]
  double seconds_ = 0;
};

}  // namespace weir

#endif  // WEIR_SIM_ANY_ORDER_H_
