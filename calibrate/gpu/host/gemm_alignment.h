// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_CALIBRATE_GPU_HOST_GEMM_ALIGNMENT_H_
#define WEIR_CALIBRATE_GPU_HOST_GEMM_ALIGNMENT_H_

#include "calibrate/execute/stage/stage_program.h"

namespace weir::calibrate {

// Returns the largest power of two, at most 16 bytes (the widest loads), that
// divides the address of every tensor of `op`. Requires: buffers are aligned to
// 256 bytes. `step`: further offsets are multiples of this many elements; 0:
// none.
int AlignmentOf(const StageProgram& program, const StageOp& op,
                int64_t step = 0);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_GEMM_ALIGNMENT_H_
