// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "calibrate/execute/reference/op_tensors.h"
#include "calibrate/execute/stage/dropout_mask.h"

namespace weir::calibrate {
namespace {

// The sum x + dropout(delta + bias) of a residual, row by row.
struct Residual {
  Rows<const double> x, delta, bias, mask_in;
  Rows<double> mask_out;

  double Sum(const StageOp& op, int64_t i, int64_t j) const {
    if (!delta) return x[i][j];
    double added = delta[i][j] + (bias ? bias[0][j] : 0);
    if (op.dropout > 0) {
      const double kept = mask_in
                              ? mask_in[i][j]
                              : IsKept(op.seed, op.dropout, i * op.columns + j);
      if (mask_out) mask_out[i][j] = kept;
      added *= kept / (1 - double{op.dropout});
    }
    return x[i][j] + added;
  }
};

// Computes the mean (0 for RMSNorm) and one over the deviation.
void RowStatistics(const std::vector<double>& row, bool rms, double epsilon,
                   double* mean, double* inverse) {
  const double n = static_cast<double>(row.size());
  *mean = 0;
  if (!rms) {
    for (const double x : row) *mean += x / n;
  }
  double square = 0;
  for (const double x : row) square += (x - *mean) * (x - *mean) / n;
  *inverse = 1 / std::sqrt(square + epsilon);
}

}  // namespace

void ReferenceNormForward(const StageOp& op, const OpTensors& tensors) {
  const Residual residual{tensors.In(0), tensors.In(1), tensors.In(2),
                          tensors.In(3), tensors.Out(3)};
  const Rows<const double> gain = tensors.In(4), shift = tensors.In(5);
  const Rows<double> sum = tensors.Out(0), y = tensors.Out(1);
  const Rows<double> statistics = tensors.Out(2);
  std::vector<double> row(op.columns);
  for (int64_t i = 0; i < op.rows; ++i) {
    for (int64_t j = 0; j < op.columns; ++j) {
      row[j] = residual.Sum(op, i, j);
      if (sum) sum[i][j] = row[j];
    }
    double mean, inverse;
    RowStatistics(row, op.rms, op.epsilon, &mean, &inverse);
    statistics[i][0] = mean;
    statistics[i][1] = inverse;
    for (int64_t j = 0; j < op.columns; ++j) {
      y[i][j] =
          (row[j] - mean) * inverse * gain[0][j] + (shift ? shift[0][j] : 0);
    }
  }
}

void ReferenceNormBackward(const StageOp& op, const OpTensors& tensors) {
  const Rows<const double> dy = tensors.In(0), sum = tensors.In(1);
  const Rows<const double> statistics = tensors.In(2), gain = tensors.In(3);
  const Rows<const double> residual = tensors.In(4);
  const Rows<double> dsum = tensors.Out(0), dgain = tensors.Out(1);
  const Rows<double> dshift = tensors.Out(2);
  const double n = static_cast<double>(op.columns);
  for (int64_t i = 0; i < op.rows; ++i) {
    const double mean = statistics[i][0], inverse = statistics[i][1];
    double mean_g = 0, mean_gx = 0;
    for (int64_t j = 0; j < op.columns; ++j) {
      const double x = (sum[i][j] - mean) * inverse;
      const double g = dy[i][j] * gain[0][j];
      if (!op.rms) mean_g += g / n;
      mean_gx += g * x / n;
      dgain[0][j] += dy[i][j] * x;
      if (dshift) dshift[0][j] += dy[i][j];
    }
    for (int64_t j = 0; j < op.columns; ++j) {
      const double x = (sum[i][j] - mean) * inverse;
      const double g = dy[i][j] * gain[0][j];
      dsum[i][j] = inverse * (g - mean_g - x * mean_gx) +
                   (residual ? residual[i][j] : 0);
    }
  }
}

void ReferenceResidualForward(const StageOp& op, const OpTensors& tensors) {
  const Residual residual{
      tensors.In(0), tensors.In(1), tensors.In(2), {}, tensors.Out(1)};
  const Rows<double> sum = tensors.Out(0);
  for (int64_t i = 0; i < op.rows; ++i) {
    for (int64_t j = 0; j < op.columns; ++j) {
      sum[i][j] = residual.Sum(op, i, j);
    }
  }
}

void ReferenceDropoutBackward(const StageOp& op, const OpTensors& tensors) {
  const Rows<const double> d = tensors.In(0), mask = tensors.In(1);
  const Rows<double> delta = tensors.Out(0);
  for (int64_t i = 0; i < op.rows; ++i) {
    for (int64_t j = 0; j < op.columns; ++j) {
      delta[i][j] = d[i][j] * mask[i][j] / (1 - double{op.dropout});
    }
  }
}

}  // namespace weir::calibrate
