// SPDX-License-Identifier: Apache-2.0
// A column-major BLAS product on the host, element by element.
#ifndef WEIR_TESTS_CALIBRATE_GPU_COLUMN_MAJOR_HOST_H_
#define WEIR_TESTS_CALIBRATE_GPU_COLUMN_MAJOR_HOST_H_

#include <vector>

#include "calibrate/gpu/host/gemm_shape.h"

namespace weir::calibrate {

// Computes result = op(first) op(second) + beta result for each matrix of a
// batch. Dimensions are those of the column-major library, not weir's row-major
// m, n, k.
inline void MultiplyColumnMajor(const ColumnMajorGemm& gemm,
                                int64_t num_batches, double beta,
                                const double* first, const double* second,
                                double* result) {
  const auto at = [](const ColumnMajorMatrix& matrix, int64_t batch,
                     int64_t row, int64_t column) {
    if (matrix.transposed) std::swap(row, column);
    return batch * matrix.batch_stride + column * matrix.leading + row;
  };
  const int64_t inner =
      gemm.first.transposed ? gemm.first.rows : gemm.first.columns;
  for (int64_t batch = 0; batch < num_batches; ++batch) {
    for (int64_t i = 0; i < gemm.result.rows; ++i) {
      for (int64_t j = 0; j < gemm.result.columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += first[at(gemm.first, batch, i, k)] *
                 second[at(gemm.second, batch, k, j)];
        }
        double& d = result[at(gemm.result, batch, i, j)];
        d = beta * d + sum;
      }
    }
  }
}

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_GPU_COLUMN_MAJOR_HOST_H_
