// SPDX-License-Identifier: Apache-2.0
// GEMMs in the row-major terms of stage operations, and in the column-major
// terms of BLAS.
#ifndef WEIR_CALIBRATE_GPU_HOST_GEMM_SHAPE_H_
#define WEIR_CALIBRATE_GPU_HOST_GEMM_SHAPE_H_

#include <cstdint>

#include "calibrate/execute/stage/stage_op.h"

namespace weir::calibrate {

// d[m, n] = op(a) op(b), or += with `accumulate`; a is stored as [k, m] if
// transposed, b as [n, k]. Rows are `stride` elements apart, matrices of a
// batch `batch_stride` (0: the same matrix for all).
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;
  int64_t num_batches = 1;
  int64_t batch_stride_a = 0, batch_stride_b = 0, batch_stride_d = 0;

  bool operator==(const GemmShape&) const = default;
};

// Requires: op.kind is kGemm.
GemmShape GemmShapeOf(const StageOp& op);

// As stored: `rows` x `columns`, with columns `leading` elements apart.
struct ColumnMajorMatrix {
  int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;  // its transpose is an operand of the GEMM
};

// result[m, n] = op(first)[m, k] op(second)[k, n]. A row-major matrix is the
// transpose of a column-major one, so d^T = op(b)^T op(a)^T is computed: b
// comes first, and m and n are exchanged.
struct ColumnMajorGemm {
  ColumnMajorMatrix first, second, result;
};
ColumnMajorGemm InColumnMajor(const GemmShape& shape);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_GEMM_SHAPE_H_
