// SPDX-License-Identifier: Apache-2.0
// AccEPT (Chen et al., An Acceleration Scheme for Speeding Up Edge
// Pipeline-parallel Training, TMC 2024): training on heterogeneous devices and
// links, with 1F1B, a flush, and compressed activations and gradients. A
// layer's latency is known per device (its seconds / the device's speed).
//
// The paper's abstract states what is balanced but no formula; our reading:
//
//   transfer = bytes (ratio / bandwidth + 1 / compress + 1 / decompress)
//   bottleneck = the slowest stage's F + B, or transfer
//   time of a batch = sum of F + B + 2 transfer over all stages
//                     + (m - 1) bottleneck
//
// The devices, their order and the cuts are chosen together. Exact. Takes
// O(layers^2 * types^2 * pairs * product over the types of (devices + 1)),
// where pairs is the number of (bottleneck, sum) pairs that a state keeps.
#ifndef WEIR_PLAN_PAPERS_ACCEPT_H_
#define WEIR_PLAN_PAPERS_ACCEPT_H_

#include "absl/status/statusor.h"
#include "plan/papers/planner_work.h"

namespace weir::plan {

struct AcceptOptions {
  double compression_ratio = 1;  // bytes sent per byte
  // Per uncompressed byte; 0: takes no time.
  double compress_bytes_per_second = 0, decompress_bytes_per_second = 0;
};

double AcceptTransferSeconds(double bytes, double bytes_per_second,
                             const AcceptOptions& options);

// Returns the time of a batch. Requires: each stage has a device.
double AcceptSeconds(const PlannerWork& work,
                     const std::vector<PlannedStage>& stages,
                     const AcceptOptions& options = {});

// A stage saves the activations of min(stages from it to the end, m)
// microbatches. Returns InvalidArgument beyond the size that device_chain.h
// states, NotFound if nothing fits.
absl::StatusOr<PlannedPipeline> PlanAccept(const PlannerWork& work,
                                           const AcceptOptions& options = {});

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_ACCEPT_H_
