// SPDX-License-Identifier: Apache-2.0
// What the papers' planners see of a model and a cluster: layers with costs,
// devices with memory, and what a byte takes between them.
#ifndef WEIR_PLAN_PLANNER_WORK_H_
#define WEIR_PLAN_PLANNER_WORK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/scenario.h"

namespace weir {

// One layer, one microbatch, on one device of speed 1. As the scenario runs it:
// where that recomputes, the backward has it and only inputs are kept; a
// planner that chooses asks for a scenario that does not.
struct PlannerLayer {
  std::string name;
  double forward_seconds = 0, backward_seconds = 0;
  double output_bytes = 0;      // sent on; its gradient is as large
  double activation_bytes = 0;  // kept from its forward to its backward
  double input_bytes = 0;       // kept instead where it is recomputed
  double parameter_bytes = 0;   // the weights in use
  double gradient_bytes = 0;    // reduced over the replicas of a stage
  double version_bytes = 0;     // of one more version of the weights
  // Weights, gradients and optimizer states, without further versions.
  double state_bytes = 0;
  bool is_block = true;  // else embedding or head: cannot be first of a cut
};

struct PlannerDevice {
  int server = 0;
  double speed = 1;  // a layer takes its seconds / speed
  double memory_bytes = 0;
};

// What a byte takes between devices: nothing of the model or the batch.
struct PlannerLinks {
  // [from][to] of one transfer that has its links for itself, all devices of a
  // tensor group sending at once; infinite where no link limits it.
  std::vector<std::vector<double>> bytes_per_second;
  double servers_bytes_per_second = 0;  // between servers, the slowest
  double server_bytes_per_second = 0;   // inside one, the slowest
};

struct PlannerWork : PlannerLinks {
  std::vector<PlannerLayer> layers;
  std::vector<PlannerDevice> devices;
  int microbatch_size = 1;   // of the costs
  int num_microbatches = 1;  // of a batch, all replicas together
};

// Layers [first_layer, end_layer) on these devices, which take microbatches in
// turn.
struct PlannedStage {
  int first_layer = 0, end_layer = 0;
  std::vector<int> devices;
  bool recompute = false;
  bool swap = false;  // activations wait in host memory
};

struct PlannedPipeline {
  std::string algorithm;
  std::string schedule;          // registry name, options included
  double objective_seconds = 0;  // by the planner's own model
  std::vector<PlannedStage> stages;
  int num_microbatches = 1;
  int microbatch_size = 0;  // 0: as given
  // PlannedStage::recompute counts; else the scenario's recomputation stays.
  bool chooses_recompute = false;
  std::vector<std::string> notes;
};

// The scenario's layers, priced for its tensor parallelism and microbatch size,
// and all GPUs of its cluster (or those it lists): one device stands for a
// tensor-parallel group. Memory is what devices leave to training.
// InvalidArgument for costs by hand, which have no layers.
absl::StatusOr<PlannerWork> PlannerWorkOf(const ResolvedScenario& scenario);
// With links that are known: of a scenario with the same GPUs and tensor
// parallelism. A thousand devices have a million pairs.
absl::StatusOr<PlannerWork> PlannerWorkOf(const ResolvedScenario& scenario,
                                          const PlannerLinks& links);
PlannerLinks PlannerLinksOf(const ResolvedScenario& scenario);

// `given`, of which the work was made, with this pipeline in it. Stages of
// equal replication are pipeline and data parallelism; of unlike replication
// they are PipeDream's round robin, which only its schedule runs.
// InvalidArgument where weir's simulator cannot say it, with the reason; still
// to be resolved.
absl::StatusOr<Scenario> ScenarioOf(const PlannedPipeline& plan,
                                    const ResolvedScenario& given);

}  // namespace weir

#endif  // WEIR_PLAN_PLANNER_WORK_H_
