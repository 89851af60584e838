// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "calibrate/execute/reference/op_tensors.h"

namespace weir::calibrate {
namespace {

constexpr double kCubic = 0.044715;

double Factor() { return std::sqrt(2 / std::acos(-1.0)); }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Biased(Rows<const double> x, Rows<const double> bias, int64_t i,
              int64_t j) {
  return x[i][j] + (bias ? bias[0][j] : 0);
}

}  // namespace

double Gelu(double x) {
  return 0.5 * x * (1 + std::tanh(Factor() * (x + kCubic * x * x * x)));
}

double GeluDerivative(double x) {
  const double t = std::tanh(Factor() * (x + kCubic * x * x * x));
  return 0.5 * (1 + t) +
         0.5 * x * (1 - t * t) * Factor() * (1 + 3 * kCubic * x * x);
}

void ReferenceGeluForward(const StageOp& op, const OpTensors& tensors) {
  const Rows<const double> x = tensors.In(0), bias = tensors.In(1);
  const Rows<double> y = tensors.Out(0);
  for (int64_t i = 0; i < op.rows; ++i) {
    for (int64_t j = 0; j < op.columns; ++j) {
      y[i][j] = Gelu(Biased(x, bias, i, j));
    }
  }
}

void ReferenceGeluBackward(const StageOp& op, const OpTensors& tensors) {
  const Rows<const double> dy = tensors.In(0), x = tensors.In(1);
  const Rows<const double> bias = tensors.In(2);
  const Rows<double> dx = tensors.Out(0);
  for (int64_t i = 0; i < op.rows; ++i) {
    for (int64_t j = 0; j < op.columns; ++j) {
      dx[i][j] = dy[i][j] * GeluDerivative(Biased(x, bias, i, j));
    }
  }
}

void ReferenceGatedForward(const StageOp& op, const OpTensors& tensors) {
  const int64_t c = op.columns;
  const Rows<const double> pair = tensors.In(0);
  const Rows<double> y = tensors.Out(0);
  for (int64_t i = 0; i < op.rows; ++i) {
    for (int64_t j = 0; j < c; ++j) {
      const double gate = pair[i][j];
      y[i][j] = gate * Sigmoid(gate) * pair[i][c + j];
    }
  }
}

void ReferenceGatedBackward(const StageOp& op, const OpTensors& tensors) {
  const int64_t c = op.columns;
  const Rows<const double> dy = tensors.In(0), pair = tensors.In(1);
  const Rows<double> d = tensors.Out(0);
  for (int64_t i = 0; i < op.rows; ++i) {
    for (int64_t j = 0; j < c; ++j) {
      const double gate = pair[i][j], up = pair[i][c + j];
      const double s = Sigmoid(gate);
      d[i][j] = dy[i][j] * up * s * (1 + gate * (1 - s));
      d[i][c + j] = dy[i][j] * gate * s;
    }
  }
}

}  // namespace weir::calibrate
