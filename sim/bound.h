// SPDX-License-Identifier: Apache-2.0
// The first of three speeds: what a scenario takes at least, from arrays, with
// no task graph and no network. Planners prune with it.
#ifndef WEIR_SIM_BOUND_H_
#define WEIR_SIM_BOUND_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/scenario.h"
#include "sim/pass_order.h"
#include "sim/pipeline_graph.h"

namespace weir {

struct PlanBound {
  // Of its schedule: the longest path through its passes and transfers, which
  // share links only with those of GPUs that provably do the same (fold.h),
  // then the steps; and with a flush the busiest link (link_loads.h). Never
  // more than Simulate's batch_seconds; equal where nothing else shares links
  // and no replicas wait for each other. Without a flush: the busiest rank's
  // passes and steps, which is what a period takes at least; a run that shows
  // none may be shorter by the passes in flight.
  double batch_seconds = 0;
  // Of every order of the same stages on the same ranks with the same meaning
  // (with or without flush). With a flush a rank takes at least
  //  - the shortest way of a microbatch to it, all its passes, its steps;
  //  - the same without the weights' gradients, and the shortest way of an
  //    input gradient from it to the first stage: what Zero Bubble (Qi et al.,
  //    ICLR 2024, section 2) leaves when weights' gradients fill all bubbles,
  //    and what BaPipe's (Zhao et al., 2020) balanced 1F1B reaches;
  //  - where transfers block, besides what it sends;
  // and a link what all of them put on it, with what must come before the first
  // and behind the last of it.
  // Where costs know both, each backward is taken whole or split, whichever is
  // shorter.
  double any_order_seconds = 0;
  // [pipeline rank], never more than what Simulate finds: from the orders
  // alone, without what is on its way.
  std::vector<double> peak_bytes;
};

// Of a run that is priced already, of everybody; the fold, of the same, may be
// null. `order` is its schedule's; null: a bound of every order will do, and
// the schedule's actions may be those of a shortened one. `finds_period`:
// without a flush, a period of its steady state is what it takes. REQUIRES:
// order->complete().
PlanBound BoundOfRun(const PipelineInputs& inputs, const Fold* fold,
                     const PassOrder* order, bool finds_period,
                     PassOrder::Buffers* buffers);

// Bounder does not look for the longest path through a batch of more actions,
// where its order repeats: filling and draining are a small part of it, so that
// the bound of every order is near.
inline constexpr size_t kMostOrderedActions = size_t{1} << 19;

// Bounder keeps orders of so many actions together, at about 64 bytes each.
inline constexpr size_t kMostKeptActions = size_t{1} << 23;

// Keeps schedules, and stages once they are priced, for the next scenarios.
// REQUIRES: scenarios whose `scenario` names the same model, cluster and device
// have the same. One per thread.
class Bounder {
 public:
  Bounder();
  ~Bounder();
  Bounder(const Bounder&) = delete;
  Bounder& operator=(const Bounder&) = delete;

  // Errors as Simulate's, but for what a generator makes: that is trusted.
  absl::StatusOr<PlanBound> Bound(const ResolvedScenario& scenario);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Errors as Simulate's.
absl::StatusOr<PlanBound> BoundOf(const ResolvedScenario& scenario);

}  // namespace weir

#endif  // WEIR_SIM_BOUND_H_
