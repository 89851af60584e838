// SPDX-License-Identifier: Apache-2.0
// The first and fastest of three methods: lower bounds on the time and memory
// of a scenario, from arrays, without a task graph or a network. Planners prune
// with them.
#ifndef WEIR_SIM_BOUNDS_BOUND_H_
#define WEIR_SIM_BOUNDS_BOUND_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/infinity.h"
#include "scenarios/scenario.h"
#include "sim/bounds/pass_order.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

struct PlanBound {
  // Bound for the scenario's schedule: the longest path through its passes and
  // transfers, which share links only with those of GPUs that provably do the
  // same (symmetry.h), followed by the steps; with a flush, also the busiest
  // link (link_loads.h). Never more than Simulate's batch_seconds; equal if
  // nothing else shares links and no replicas wait for each other. Without a
  // flush: the passes and steps of the busiest rank, which every period takes
  // at least; a run in which no period is found may be shorter by the passes in
  // flight.
  double batch_seconds = 0;
  // Bound for every order of the same stages on the same ranks with the same
  // semantics (with or without a flush). With a flush a rank takes at least
  // - the shortest path of a microbatch to it, all its passes, and its steps;
  // - the same without the weight gradients, and the shortest path of an input
  //   gradient from it to the first stage. Zero Bubble (Qi et al., ICLR 2024,
  //   section 2) attains this when weight gradients fill all bubbles, and so
  //   does the balanced 1F1B of BaPipe (Zhao et al., 2020);
  // - if transfers block, also the time of its sends;
  // and a link takes at least its total load, and the time that must pass
  // before the first and after the last transfer on it. If costs are known for
  // both, each backward is taken whole or split, whichever is shorter.
  double any_order_seconds = 0;
  // [pipeline rank]: never more than the peak of Simulate, from the orders
  // alone, without data in flight.
  std::vector<double> peak_bytes;
};

// Returns the bound of a run that is already priced, for all GPUs (no symmetry
// reduction). `gpus`, of the same run, may be a part of them. `order` belongs
// to its schedule; if null, a bound for every order is enough, and the
// schedule's actions may be those of a shortened one. `finds_period`: without a
// flush, whether the time of the run is a period of its steady state.
// `overlaps_batches`: the schedule is one batch with a flush, and those of the
// run overlap, so that only the passes and steps of the busiest rank count.
// Requires: if `order` is not null, order->complete().
PlanBound BoundOfRun(const PipelineInputs& inputs, const Representatives& gpus,
                     const PassOrder* order, bool finds_period,
                     PassOrder::Buffers* buffers,
                     bool overlaps_batches = false);

// Bounder does not compute the longest path through batches of more actions
// whose order repeats: filling and draining are a small part of them, so the
// bound for every order is close.
inline constexpr size_t kMostOrderedActions = size_t{1} << 19;

// Bounder keeps orders with this many actions in total, at about 64 bytes each.
inline constexpr size_t kMostKeptActions = size_t{1} << 23;

// Keeps schedules and priced stages for the next scenarios. Use one per thread.
// Requires: scenarios that name the same model, cluster and device have the
// same ones.
class Bounder {
 public:
  Bounder();
  ~Bounder();
  Bounder(const Bounder&) = delete;
  Bounder& operator=(const Bounder&) = delete;

  // Returns Simulate's errors, except those of generated schedules, which are
  // not validated.
  // If a rank needs more than `limit_bytes`, does not compute the seconds,
  // which are 0.
  absl::StatusOr<PlanBound> Bound(const scenarios::ResolvedScenario& scenario,
                                  double limit_bytes = kInfinity);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// As Bounder::Bound, for a single scenario.
absl::StatusOr<PlanBound> BoundOf(const scenarios::ResolvedScenario& scenario);

}  // namespace weir::sim

#endif  // WEIR_SIM_BOUNDS_BOUND_H_
