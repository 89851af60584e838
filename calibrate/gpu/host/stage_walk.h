// SPDX-License-Identifier: Apache-2.0
// Execution of a stage from its first forward to its update, with buffers
// allocated and freed by their lifetimes.
#ifndef WEIR_CALIBRATE_GPU_HOST_STAGE_WALK_H_
#define WEIR_CALIBRATE_GPU_HOST_STAGE_WALK_H_

#include <vector>

#include "calibrate/execute/stage/stage_program.h"

namespace weir::calibrate {

struct StageStep {
  enum class Kind { kAllocate, kRun, kFree };
  Kind kind = Kind::kRun;
  int microbatch = -1;  // -1: weights, gradients, states, the update
  int buffer = -1;      // kAllocate, kFree
  ProgramPass pass = ProgramPass::kForward;
  int op = -1;  // kRun
};

// Returns the steps of all forwards, then all backwards (of the input, then of
// the weights, microbatch by microbatch in reverse order), then the update.
// Permanent buffers are allocated first and freed last.
std::vector<StageStep> WalkStage(const StageProgram& program,
                                 int num_microbatches);

// Returns the peak bytes in use, with each buffer rounded up to a multiple of
// `granularity`.
int64_t PeakOfWalk(const StageProgram& program,
                   const std::vector<StageStep>& steps, int64_t granularity);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_STAGE_WALK_H_
