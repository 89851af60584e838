// SPDX-License-Identifier: Apache-2.0
// Embedding, loss and optimizer.
#include <algorithm>
#include <cmath>

#include "calibrate/execute/reference/op_tensors.h"

namespace weir::calibrate {

void ReferenceEmbeddingForward(const StageOp& op, const OpTensors& tensors) {
  const Rows<const double> tokens = tensors.In(0), table = tensors.In(1);
  const Rows<const double> positions = tensors.In(2);
  const Rows<double> y = tensors.Out(0);
  for (int64_t i = 0; i < op.rows; ++i) {
    const auto token = static_cast<int64_t>(tokens[0][i]);
    const int64_t position = positions ? i % op.sequence_length : 0;
    for (int64_t j = 0; j < op.columns; ++j) {
      y[i][j] = table[token][j] + (positions ? positions[position][j] : 0);
    }
  }
}

void ReferenceEmbeddingBackward(const StageOp& op, const OpTensors& tensors) {
  const Rows<const double> d = tensors.In(0), tokens = tensors.In(1);
  const Rows<double> table = tensors.Out(0), positions = tensors.Out(1);
  for (int64_t i = 0; i < op.rows; ++i) {
    const auto token = static_cast<int64_t>(tokens[0][i]);
    for (int64_t j = 0; j < op.columns; ++j) {
      table[token][j] += d[i][j];
      if (positions) positions[i % op.sequence_length][j] += d[i][j];
    }
  }
}

void ReferenceCrossEntropy(const StageOp& op, const OpTensors& tensors) {
  const Rows<const double> targets = tensors.In(1);
  const Rows<double> logits = tensors.Out(0), losses = tensors.Out(1);
  for (int64_t i = 0; i < op.rows; ++i) {
    double* row = logits[i];
    const auto target = static_cast<int64_t>(targets[0][i]);
    const double largest = *std::max_element(row, row + op.columns);
    double sum = 0;
    for (int64_t j = 0; j < op.columns; ++j) sum += std::exp(row[j] - largest);
    if (losses) losses[0][i] = std::log(sum) + largest - row[target];
    for (int64_t j = 0; j < op.columns; ++j) {
      row[j] = op.loss_scale *
               (std::exp(row[j] - largest) / sum - (j == target ? 1 : 0));
    }
  }
}

void ReferenceAdam(const StageOp& op, const OpTensors& tensors) {
  const Rows<double> gradient = tensors.Out(0), master = tensors.Out(1);
  const Rows<double> first = tensors.Out(2), second = tensors.Out(3);
  const Rows<double> weight = tensors.Out(4);
  const double beta1 = op.adam.beta1, beta2 = op.adam.beta2;
  const double correction1 = 1 - std::pow(beta1, op.adam.step);
  const double correction2 = 1 - std::pow(beta2, op.adam.step);
  for (int64_t i = 0; i < op.rows; ++i) {
    for (int64_t j = 0; j < op.columns; ++j) {
      double& g = gradient[i][j];
      double& m = first[i][j];
      double& v = second[i][j];
      g *= op.adam.gradient_scale;
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      const double step =
          m / correction1 / (std::sqrt(v / correction2) + op.adam.epsilon);
      master[i][j] -=
          op.adam.learning_rate * (step + op.adam.weight_decay * master[i][j]);
      weight[i][j] = master[i][j];
      g = 0;
    }
  }
}

void ReferenceClear(const StageOp& op, const OpTensors& tensors) {
  const Rows<double> x = tensors.Out(0);
  for (int64_t i = 0; i < op.rows; ++i) {
    std::fill(x[i], x[i] + op.columns, 0.0);
  }
}

}  // namespace weir::calibrate
