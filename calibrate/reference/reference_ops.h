// SPDX-License-Identifier: Apache-2.0
// The operations of a stage in double precision on the host, straight from
// their formulas: what the CUDA kernels are compared with.
#ifndef WEIR_CALIBRATE_REFERENCE_REFERENCE_OPS_H_
#define WEIR_CALIBRATE_REFERENCE_REFERENCE_OPS_H_

#include "absl/types/span.h"
#include "calibrate/stage/stage_op.h"

namespace weir {

// Runs `op`. All tensors are doubles, whatever their format on a GPU: tokens
// and targets whole numbers, masks 0 or 1. Nothing is rounded.
//
// inputs[i] and outputs[i] belong to op.inputs[i] and op.outputs[i], in the
// order of OpKind's table, null where the operation leaves a tensor out. A
// pointer is at the tensor's first element: the view's `offset` is already in
// it, its `buffer` is not looked at. Rows are the view's `stride` elements
// apart, or dense where it is 0 or the op carries no views at all. What is
// updated in place is read and written through outputs[i].
//
// Of unfused attention's backward the scratch is the gradient of the products
// q . k, the scale head_size^-1/2 included.
//
// REQUIRES: sizes are as stage_op.h says; outputs do not overlap other tensors.
void RunReference(const StageOp& op, absl::Span<const double* const> inputs,
                  absl::Span<double* const> outputs);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REFERENCE_REFERENCE_OPS_H_
