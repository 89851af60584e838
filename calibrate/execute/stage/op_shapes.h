// SPDX-License-Identifier: Apache-2.0
// Sizes of an operation's tensors: the tables of stage_op.h as data.
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_OP_SHAPES_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_OP_SHAPES_H_

#include "calibrate/execute/stage/stage_op.h"

namespace weir::calibrate {

// A dense tensor of more than two dimensions has its last dimension as columns.
struct TensorShape {
  int64_t rows = 0, columns = 0;
  bool half = true;  // in the stage's 16-bit format; otherwise see the table

  int64_t num_elements() const { return rows * columns; }
};

// Returns the shape of inputs[index] or outputs[index], present or not.
TensorShape InputShape(const StageOp& op, int index);
TensorShape OutputShape(const StageOp& op, int index);

// Returns the number of entries in the table of `kind`: inputs.size() and
// outputs.size().
int NumInputs(OpKind kind);
int NumOutputs(OpKind kind);

// Returns the number of elements from one row of the view to the next.
inline int64_t StrideOf(const TensorView& view, const TensorShape& shape) {
  return view.stride > 0 ? view.stride : shape.columns;
}

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_OP_SHAPES_H_
