// SPDX-License-Identifier: Apache-2.0
// The operations of a stage in double precision on the host, written directly
// from their formulas. The CUDA kernels are compared with them.
#ifndef WEIR_CALIBRATE_EXECUTE_REFERENCE_REFERENCE_OPS_H_
#define WEIR_CALIBRATE_EXECUTE_REFERENCE_REFERENCE_OPS_H_

#include "absl/types/span.h"
#include "calibrate/execute/stage/stage_op.h"

namespace weir::calibrate {

// Runs `op`. All tensors are doubles, regardless of their format on a GPU:
// tokens and targets are whole numbers, masks 0 or 1. Nothing is rounded.
//
// inputs[i] and outputs[i] correspond to op.inputs[i] and op.outputs[i], in the
// order of OpKind's table, and are null for absent tensors. A pointer is to the
// tensor's first element: it includes the view's `offset`, and the view's
// `buffer` is ignored. Rows are the view's `stride` elements apart, or dense if
// `stride` is 0 or the op has no views. Tensors updated in place are read and
// written through outputs[i].
//
// The scratch of unfused attention's backward is the gradient of the products q
// . k, including the scale head_size^-1/2.
//
// Requires: sizes are as in stage_op.h; outputs do not overlap other tensors.
void RunReference(const StageOp& op, absl::Span<const double* const> inputs,
                  absl::Span<double* const> outputs);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_REFERENCE_REFERENCE_OPS_H_
