// SPDX-License-Identifier: Apache-2.0
// How large the tensors of an operation are: what the tables of stage_op.h say,
// as data.
#ifndef WEIR_CALIBRATE_STAGE_OP_SHAPES_H_
#define WEIR_CALIBRATE_STAGE_OP_SHAPES_H_

#include "calibrate/stage/stage_op.h"

namespace weir {

// A dense tensor of more than two dimensions counts its last as columns.
struct TensorShape {
  int64_t rows = 0, columns = 0;
  bool half = true;  // of the stage's 16-bit format; else see the table

  int64_t num_elements() const { return rows * columns; }
};

// Of inputs[index] and outputs[index], present or not.
TensorShape InputShape(const StageOp& op, int index);
TensorShape OutputShape(const StageOp& op, int index);

// Entries in op's table: what inputs.size() and outputs.size() are.
int NumInputs(OpKind kind);
int NumOutputs(OpKind kind);

// Elements from one row of the view to the next.
inline int64_t StrideOf(const TensorView& view, const TensorShape& shape) {
  return view.stride > 0 ? view.stride : shape.columns;
}

}  // namespace weir

#endif  // WEIR_CALIBRATE_STAGE_OP_SHAPES_H_
