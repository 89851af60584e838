// SPDX-License-Identifier: Apache-2.0
// An operation with its own tensors, for tests against finite differences.
#ifndef WEIR_TESTS_CALIBRATE_EXECUTE_REFERENCE_OP_CASE_H_
#define WEIR_TESTS_CALIBRATE_EXECUTE_REFERENCE_OP_CASE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "calibrate/execute/reference/reference_ops.h"
#include "calibrate/execute/stage/op_shapes.h"

namespace weir::calibrate {

using Numbers = std::vector<double>;

inline Numbers Normal(int64_t n, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  Numbers numbers(n);
  for (double& number : numbers) number = normal(generator);
  return numbers;
}

inline double Dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Inputs are random, outputs 0. An empty vector is an absent tensor.
struct OpCase {
  explicit OpCase(const StageOp& stage_op) : op(stage_op) {
    for (int i = 0; i < NumInputs(op.kind); ++i) {
      inputs.push_back(Normal(InputShape(op, i).num_elements(), 17 * i + 3));
    }
    for (int i = 0; i < NumOutputs(op.kind); ++i) {
      outputs.emplace_back(OutputShape(op, i).num_elements(), 0);
    }
  }

  void Run() {
    std::vector<const double*> in;
    std::vector<double*> out;
    for (auto& tensor : inputs) {
      in.push_back(tensor.empty() ? nullptr : tensor.data());
    }
    for (auto& tensor : outputs) {
      out.push_back(tensor.empty() ? nullptr : tensor.data());
    }
    RunReference(op, in, out);
  }

  StageOp op;
  std::vector<Numbers> inputs, outputs;
};

// Returns the central differences of `loss` with respect to each element of
// `x`. Third derivatives are about 1, so a step of 1e-5 has an error of about
// 1e-10. Rounding adds 1e-16 |loss| / 1e-5, which is about 1e-10 too.
template <typename Loss>
Numbers Differences(Numbers* x, Loss loss) {
  constexpr double kStep = 1e-5;
  Numbers gradient;
  for (double& value : *x) {
    const double at = value;
    value = at + kStep;
    const double above = loss();
    value = at - kStep;
    gradient.push_back((above - loss()) / (2 * kStep));
    value = at;
  }
  return gradient;
}

// Compares norm-wise. Central differences have an error of 1e-10 for values of
// about 1.
inline void ExpectSame(const Numbers& actual, const Numbers& expected,
                       double tolerance = 1e-7) {
  ASSERT_EQ(actual.size(), expected.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    error += std::pow(actual[i] - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  EXPECT_GT(size, 0);
  EXPECT_LE(std::sqrt(error / size), tolerance);
}

// Returns the gradient of sum(weights * outputs[output]) with respect to
// inputs[input].
inline Numbers GradientOf(OpCase forward, int input, int output,
                          const Numbers& weights) {
  return Differences(&forward.inputs[input], [&] {
    OpCase run = forward;
    run.Run();
    return Dot(run.outputs[output], weights);
  });
}

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_EXECUTE_REFERENCE_OP_CASE_H_
