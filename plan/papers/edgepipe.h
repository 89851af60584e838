// SPDX-License-Identifier: Apache-2.0
// EdgePipe, later PipeEdge (Hu et al., Pipeline Parallelism for Inference on
// Heterogeneous Edge Computing, 2021): which devices, in which order, with
// which layers, so that the slowest stage or transfer of an inference pipeline
// is as fast as possible. Formulas of usc-isi/PipeEdge,
// src-native/schedule.cpp: dynamic programming over (layers, device subset,
// next device), a subset being a number of devices of each type.
//
// Exact. O(layers^2 types^2 product of (devices of a type + 1)).
#ifndef WEIR_PLAN_PAPERS_EDGEPIPE_H_
#define WEIR_PLAN_PAPERS_EDGEPIPE_H_

#include "absl/status/statusor.h"
#include "plan/planner_work.h"

namespace weir {

struct EdgePipeOptions {
  // Buffers of a stage's input (none on the first) and output, beside the two
  // that are being worked on.
  int buffers_in = 2, buffers_out = 2;
};

// What a device needs for layers [first, end): their weights, one input and one
// output at work, and the buffers. The first layer's input_bytes is the
// model's.
double EdgePipeMemoryBytes(const PlannerWork& work, int first, int end,
                           const EdgePipeOptions& options = {});

// Seconds per microbatch of the slowest stage or transfer, the inverse of the
// throughput. REQUIRES: a device in every stage.
double EdgePipeSeconds(const PlannerWork& work,
                       const std::vector<PlannedStage>& stages);

// Forwards only; devices that help nothing stay idle. A device must have more
// memory than needed, as there. InvalidArgument beyond the size that
// device_chain.h states, NotFound when nothing fits.
absl::StatusOr<PlannedPipeline> PlanEdgePipe(
    const PlannerWork& work, const EdgePipeOptions& options = {});

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_EDGEPIPE_H_
