// SPDX-License-Identifier: Apache-2.0
// Matrix products in row-major terms, as stage operations have them, and in
// the column-major ones of BLAS.
#ifndef WEIR_CALIBRATE_GPU_HOST_PRODUCT_SHAPE_H_
#define WEIR_CALIBRATE_GPU_HOST_PRODUCT_SHAPE_H_

#include <cstdint>

#include "calibrate/stage/stage_op.h"

namespace weir {

// d[m, n] = op(a) op(b), or += with `accumulate`; a is stored [k, m] where
// transposed, b [n, k]. Rows lie `stride` elements apart, the matrices of a
// batch `batch_stride` (0: all the same).
struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;
  int64_t num_batches = 1;
  int64_t batch_stride_a = 0, batch_stride_b = 0, batch_stride_d = 0;

  bool operator==(const ProductShape&) const = default;
};

// REQUIRES: op.kind is kProduct.
ProductShape ShapeOfProduct(const StageOp& op);

// As stored: `rows` x `columns`, columns `leading` elements apart.
struct ColumnMajorMatrix {
  int64_t rows = 0, columns = 0, leading = 0, batch_stride = 0;
  bool transposed = false;  // what enters the product is its transpose
};

// result[m, n] = op(first)[m, k] op(second)[k, n]. A row-major matrix is the
// transpose of a column-major one, so d^T = op(b)^T op(a)^T is computed: b
// comes first, m and n change places.
struct ColumnMajorProduct {
  ColumnMajorMatrix first, second, result;
};
ColumnMajorProduct InColumnMajor(const ProductShape& shape);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_HOST_PRODUCT_SHAPE_H_
