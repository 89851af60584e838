// SPDX-License-Identifier: Apache-2.0
// A stage run from its first forward to its update, its buffers taken and given
// back as their lifetimes say.
#ifndef WEIR_CALIBRATE_GPU_HOST_STAGE_WALK_H_
#define WEIR_CALIBRATE_GPU_HOST_STAGE_WALK_H_

#include <vector>

#include "calibrate/stage/stage_program.h"

namespace weir {

struct StageStep {
  enum class Kind { kTake, kRun, kGiveBack };
  Kind kind = Kind::kRun;
  int microbatch = -1;  // -1: weights, gradients, states, the update
  int buffer = -1;      // kTake, kGiveBack
  StagePass pass = StagePass::kForward;
  int op = -1;  // kRun
};

// All forwards, then all backwards (of the input, then of the weights, one
// microbatch after the other, the last one first), then the update. What is
// always there is taken first and given back last.
std::vector<StageStep> WalkStage(const StageProgram& program,
                                 int num_microbatches);

// The most bytes in use at a time, each buffer rounded up to a multiple of
// `granularity`.
int64_t PeakOfWalk(const StageProgram& program,
                   const std::vector<StageStep>& steps, int64_t granularity);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_HOST_STAGE_WALK_H_
