// SPDX-License-Identifier: Apache-2.0
// The model and the cluster as the papers' planners see them: layers with
// costs, devices with memory, and bandwidths between devices.
#ifndef WEIR_PLAN_PAPERS_PLANNER_WORK_H_
#define WEIR_PLAN_PAPERS_PLANNER_WORK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// Costs of a layer for one microbatch on a device of speed 1, as the scenario
// runs it: with recomputation, the backward includes it and only inputs are
// saved. A planner that chooses recomputation needs a scenario without it.
struct PlannerLayer {
  std::string name;
  double forward_seconds = 0, backward_seconds = 0;
  double output_bytes = 0;  // sent to the next layer; its gradient is as large
  double activation_bytes = 0;  // saved from the forward to the backward
  double input_bytes = 0;       // saved instead with recomputation
  double parameter_bytes = 0;   // the weights in use
  double gradient_bytes = 0;    // reduced across the replicas of a stage
  double version_bytes = 0;     // per additional version of the weights
  // Weights, gradients and optimizer states, without additional versions.
  double state_bytes = 0;
  bool is_block = true;  // false: embedding or head, never its own stage
};

struct PlannerDevice {
  int server = 0;
  double speed = 1;  // a layer takes its seconds / speed
  double memory_bytes = 0;
};

// Bandwidths between devices, independent of the model and the batch.
struct PlannerLinks {
  // [from][to] Bandwidth of an uncontended transfer between two devices, all
  // GPUs of a tensor group sending concurrently; infinite if no link limits it.
  std::vector<std::vector<double>> bytes_per_second;
  double servers_bytes_per_second = 0;  // slowest between servers
  double server_bytes_per_second = 0;   // slowest inside a server
};

struct PlannerWork : PlannerLinks {
  std::vector<PlannerLayer> layers;
  std::vector<PlannerDevice> devices;
  int microbatch_size = 1;   // basis of the costs
  int num_microbatches = 1;  // per batch, over all replicas
};

// Layers [first_layer, end_layer) on these devices, which process microbatches
// round-robin.
struct PlannedStage {
  int first_layer = 0, end_layer = 0;
  std::vector<int> devices;
  bool recompute = false;
  bool swap = false;  // activations are swapped to host memory
};

struct PlannedPipeline {
  std::string algorithm;
  std::string schedule;          // registry name, options included
  double objective_seconds = 0;  // by the planner's own model
  // How often a batch takes the objective: 1 if the planner minimizes the time
  // of a batch, else the number of microbatches that the slowest stage
  // processes one after another.
  double objectives_per_batch = 1;
  bool inference = false;  // forwards only: not comparable with training
  std::vector<PlannedStage> stages;
  int num_microbatches = 1;
  int microbatch_size = 0;  // 0: unchanged
  // Whether PlannedStage::recompute replaces the scenario's recomputation.
  bool chooses_recompute = false;
  std::vector<std::string> notes;
};

// Returns the scenario's layers, priced for its tensor parallelism and
// microbatch size, and all GPUs of its cluster (or those it lists). One device
// represents a tensor-parallel group; its memory is what is available to
// training. Returns InvalidArgument for given costs, which have no
// layers.
absl::StatusOr<PlannerWork> PlannerWorkOf(
    const scenarios::ResolvedScenario& scenario);
// As above with known `links`, those of a scenario with the same GPUs and
// tensor parallelism. Saves time, as a thousand devices have a million pairs.
absl::StatusOr<PlannerWork> PlannerWorkOf(
    const scenarios::ResolvedScenario& scenario, const PlannerLinks& links);
PlannerLinks PlannerLinksOf(const scenarios::ResolvedScenario& scenario);

// Returns `given`, the scenario from which the work was computed, with this
// pipeline. Stages of equal replication become pipeline and data parallelism;
// stages of unequal replication become PipeDream's round robin, which only its
// schedule runs. Returns InvalidArgument, with the reason, if weir's simulator
// cannot represent it. The result is not resolved.
absl::StatusOr<Scenario> ScenarioOf(const PlannedPipeline& plan,
                                    const scenarios::ResolvedScenario& given);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_PLANNER_WORK_H_
