// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_CALIBRATE_GPU_HOST_PRODUCT_ALIGNMENT_H_
#define WEIR_CALIBRATE_GPU_HOST_PRODUCT_ALIGNMENT_H_

#include "calibrate/stage/stage_program.h"

namespace weir {

// Bytes that divide the address of every tensor of `op`, the buffers being
// aligned to 256: a power of two, at most 16, which is what the widest loads
// need. `step`: elements that further offsets are multiples of; 0: none.
int AlignmentOf(const StageProgram& program, const StageOp& op,
                int64_t step = 0);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_HOST_PRODUCT_ALIGNMENT_H_
