// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "calibrate/execute/reference/op_tensors.h"

namespace weir::calibrate {
namespace {

// The rows of b in use at one time stay in the L2 cache.
constexpr int64_t kBlockInner = 64;
constexpr int64_t kBlockColumns = 256;

std::vector<double> Transposed(Rows<const double> from, int64_t rows,
                               int64_t columns) {
  std::vector<double> to(rows * columns);
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[i * columns + j] = from[j][i];
  }
  return to;
}

// to[j] += a[0] b[0][j] + ... + a[count - 1] b[count - 1][j]
void AddRows(const double* a, Rows<const double> b, int64_t count,
             int64_t columns, double* to) {
  int64_t l = 0;
  for (; l + 4 <= count; l += 4) {
    const double a0 = a[l], a1 = a[l + 1], a2 = a[l + 2], a3 = a[l + 3];
    const double *b0 = b[l], *b1 = b[l + 1], *b2 = b[l + 2], *b3 = b[l + 3];
    for (int64_t j = 0; j < columns; ++j) {
      to[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
    }
  }
  for (; l < count; ++l) {
    for (int64_t j = 0; j < columns; ++j) to[j] += a[l] * b[l][j];
  }
}

// Returns a [m, k] times b [k, n], dense.
std::vector<double> Multiply(Rows<const double> a, Rows<const double> b,
                             int64_t m, int64_t n, int64_t k) {
  std::vector<double> d(m * n, 0);
  for (int64_t l = 0; l < k; l += kBlockInner) {
    const int64_t inner = std::min(kBlockInner, k - l);
    for (int64_t j = 0; j < n; j += kBlockColumns) {
      const int64_t columns = std::min(kBlockColumns, n - j);
      const Rows<const double> block{b[l] + j, b.stride};
      for (int64_t i = 0; i < m; ++i) {
        AddRows(a[i] + l, block, inner, columns, &d[i * n + j]);
      }
    }
  }
  return d;
}

}  // namespace

void ReferenceGemm(const StageOp& op, const OpTensors& tensors) {
  const int64_t m = op.rows, n = op.columns, k = op.inner;
  Rows<const double> a = tensors.In(0), b = tensors.In(1);
  std::vector<double> a_transposed, b_transposed;
  if (op.transpose_a) {
    a_transposed = Transposed(a, m, k);
    a = {a_transposed.data(), k};
  }
  if (op.transpose_b) {
    b_transposed = Transposed(b, k, n);
    b = {b_transposed.data(), n};
  }
  const std::vector<double> gemm = Multiply(a, b, m, n, k);
  const bool adds_bias =
      op.epilogue == Epilogue::kBias || op.epilogue == Epilogue::kBiasGelu;
  const Rows<const double> third = tensors.In(2);  // bias or aux
  const Rows<double> d = tensors.Out(0), aux = tensors.Out(1);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double value = gemm[i * n + j];
      if (adds_bias && third) value += third[0][j];
      if (op.epilogue == Epilogue::kBiasGelu) {
        aux[i][j] = value;
        value = Gelu(value);
      } else if (op.epilogue == Epilogue::kGeluGradient) {
        value *= GeluDerivative(third[i][j]);
      }
      d[i][j] = op.accumulate ? d[i][j] + value : value;
    }
  }
}

void ReferenceBiasGradient(const StageOp& op, const OpTensors& tensors) {
  const Rows<const double> d = tensors.In(0);
  const Rows<double> gradient = tensors.Out(0);
  for (int64_t i = 0; i < op.rows; ++i) {
    for (int64_t j = 0; j < op.columns; ++j) gradient[0][j] += d[i][j];
  }
}

}  // namespace weir::calibrate
