// SPDX-License-Identifier: Apache-2.0
// Verifies attention on a few queries and keys if a whole head takes too long.
#ifndef WEIR_CALIBRATE_GPU_HOST_ATTENTION_SAMPLE_H_
#define WEIR_CALIBRATE_GPU_HOST_ATTENTION_SAMPLE_H_

#include "calibrate/gpu/host/op_error.h"

namespace weir::calibrate {

// Returns the error as RelativeError(), from num_samples queries (forward:
// output and statistics; backward: their gradient) and keys (gradients of key
// and value), in different sequences and heads. Ignores the scratch.
double AttentionSampleError(const StageOp& op, const OpCopies& copies,
                            int num_samples);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_ATTENTION_SAMPLE_H_
