// SPDX-License-Identifier: Apache-2.0
// EdgePipe, later PipeEdge (Hu et al., Pipeline Parallelism for Inference on
// Heterogeneous Edge Computing, 2021): chooses devices, their order and their
// layers to minimize the slowest stage or transfer of an inference pipeline.
// Formulas of usc-isi/PipeEdge, src-native/schedule.cpp: dynamic programming
// over (layers, device subset, next device), where a subset is a number of
// devices of each type.
//
// Exact. O(layers^2 types^2 product of (devices of a type + 1)).
#ifndef WEIR_PLAN_PAPERS_EDGEPIPE_H_
#define WEIR_PLAN_PAPERS_EDGEPIPE_H_

#include "absl/status/statusor.h"
#include "plan/papers/planner_work.h"

namespace weir::plan {

struct EdgePipeOptions {
  // Buffers for a stage's input (none on the first stage) and output, in
  // addition to the two in use.
  int buffers_in = 2, buffers_out = 2;
};

// Returns the bytes that a device needs for layers [first, end): the weights,
// one input and one output in use, and the buffers. The model's input is
// input_bytes of the first layer.
double EdgePipeMemoryBytes(const PlannerWork& work, int first, int end,
                           const EdgePipeOptions& options = {});

// Returns the seconds per microbatch of the slowest stage or transfer, the
// inverse of the throughput. Requires: each stage has a device.
double EdgePipeSeconds(const PlannerWork& work,
                       const std::vector<PlannedStage>& stages);

// Plans forward passes only. Devices that do not help stay idle. As in
// PipeEdge, a device must have strictly more memory than needed.
// Returns InvalidArgument beyond the size that device_chain.h states, NotFound
// if nothing fits.
absl::StatusOr<PlannedPipeline> PlanEdgePipe(
    const PlannerWork& work, const EdgePipeOptions& options = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_EDGEPIPE_H_
