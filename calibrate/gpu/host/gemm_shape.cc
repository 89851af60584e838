// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/gemm_shape.h"

#include "calibrate/execute/stage/op_shapes.h"

namespace weir::calibrate {

GemmShape GemmShapeOf(const StageOp& op) {
  return {.m = op.rows,
          .n = op.columns,
          .k = op.inner,
          .transpose_a = op.transpose_a,
          .transpose_b = op.transpose_b,
          .accumulate = op.accumulate,
          .stride_a = StrideOf(op.inputs[0], InputShape(op, 0)),
          .stride_b = StrideOf(op.inputs[1], InputShape(op, 1)),
          .stride_d = StrideOf(op.outputs[0], OutputShape(op, 0))};
}

ColumnMajorGemm InColumnMajor(const GemmShape& shape) {
  const auto stored = [](int64_t rows, int64_t columns, int64_t stride,
                         int64_t batch_stride, bool transposed) {
    // Row-major [rows, columns] is column-major [columns, rows].
    return ColumnMajorMatrix{columns, rows, stride, batch_stride, transposed};
  };
  const bool ta = shape.transpose_a, tb = shape.transpose_b;
  return {.first = stored(tb ? shape.n : shape.k, tb ? shape.k : shape.n,
                          shape.stride_b, shape.batch_stride_b, tb),
          .second = stored(ta ? shape.k : shape.m, ta ? shape.m : shape.k,
                           shape.stride_a, shape.batch_stride_a, ta),
          .result = stored(shape.m, shape.n, shape.stride_d,
                           shape.batch_stride_d, false)};
}

}  // namespace weir::calibrate
