// SPDX-License-Identifier: Apache-2.0
// Runs a whole stage in double precision on the host.
#ifndef WEIR_CALIBRATE_REFERENCE_REFERENCE_STAGE_H_
#define WEIR_CALIBRATE_REFERENCE_REFERENCE_STAGE_H_

#include <vector>

#include "calibrate/stage/stage_program.h"

namespace weir {

// One vector for each of program.buffers, as long as its num_elements.
using StageBuffers = std::vector<std::vector<double>>;

// Gradients and optimizer state 0, the rest NaN: whatever is read before it is
// written shows.
StageBuffers MakeStageBuffers(const StageProgram& program);

// One operation, the pass's all in order, on buffers of one microbatch. To run
// several microbatches, swap weights, gradients and state from one's buffers
// into the next's.
void RunReferenceOp(const StageOp& op, StageBuffers* buffers);
void RunReferencePass(const StageProgram& program, StagePass pass,
                      StageBuffers* buffers);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REFERENCE_REFERENCE_STAGE_H_
