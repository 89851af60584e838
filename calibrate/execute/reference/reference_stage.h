// SPDX-License-Identifier: Apache-2.0
// Runs a whole stage in double precision on the host.
#ifndef WEIR_CALIBRATE_EXECUTE_REFERENCE_REFERENCE_STAGE_H_
#define WEIR_CALIBRATE_EXECUTE_REFERENCE_REFERENCE_STAGE_H_

#include <vector>

#include "calibrate/execute/stage/stage_program.h"

namespace weir::calibrate {

// One vector per program.buffers entry, with its num_elements.
using StageBuffers = std::vector<std::vector<double>>;

// Returns buffers with gradients and optimizer state 0 and all others NaN,
// which makes reads of unwritten values visible.
StageBuffers MakeStageBuffers(const StageProgram& program);

// Runs one operation, or all operations of a pass in order, on the buffers of
// one microbatch. To run several microbatches, swap weights, gradients and
// state from the buffers of one into those of the next.
void RunReferenceOp(const StageOp& op, StageBuffers* buffers);
void RunReferencePass(const StageProgram& program, ProgramPass pass,
                      StageBuffers* buffers);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_REFERENCE_REFERENCE_STAGE_H_
