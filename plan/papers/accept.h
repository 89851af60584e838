// SPDX-License-Identifier: Apache-2.0
// AccEPT (Chen et al., An Acceleration Scheme for Speeding Up Edge
// Pipeline-parallel Training, TMC 2024): training over unlike devices and
// links, 1F1B with a flush, activations and gradients compressed on their way.
// A layer's latency is known per device (its seconds / the device's speed).
//
// The paper's abstract says what is balanced, not a formula; our reading:
//
//   transfer = bytes (ratio / bandwidth + 1 / compress + 1 / decompress)
//   bottleneck = the slowest stage's F + B, or transfer
//   time of a batch = all F + B + 2 transfers, once + (m - 1) bottleneck
//
// Which devices, their order and the cuts are chosen together. Exact.
// O(layers^2 types^2 product of (devices of a type + 1) pairs), pairs being the
// bottlenecks and sums that a state keeps.
#ifndef WEIR_PLAN_PAPERS_ACCEPT_H_
#define WEIR_PLAN_PAPERS_ACCEPT_H_

#include "absl/status/statusor.h"
#include "plan/planner_work.h"

namespace weir {

struct AcceptOptions {
  double compression_ratio = 1;  // bytes sent per byte
  // Of uncompressed bytes; 0: takes no time.
  double compress_bytes_per_second = 0, decompress_bytes_per_second = 0;
};

double AcceptTransferSeconds(double bytes, double bytes_per_second,
                             const AcceptOptions& options);

// Seconds of a batch. REQUIRES: a device in every stage.
double AcceptSeconds(const PlannerWork& work,
                     const std::vector<PlannedStage>& stages,
                     const AcceptOptions& options = {});

// A stage keeps min(stages from it to the end, m) microbatches.
// InvalidArgument beyond the size that device_chain.h states, NotFound when
// nothing fits.
absl::StatusOr<PlannedPipeline> PlanAccept(const PlannerWork& work,
                                           const AcceptOptions& options = {});

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_ACCEPT_H_
