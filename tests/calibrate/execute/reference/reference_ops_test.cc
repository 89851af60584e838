// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/calibrate/execute/reference/op_case.h"

namespace weir::calibrate::reference_ops_test {

// Checks sizes around the blocks of the loops.
TEST(ReferenceOpsTest, ProductIsTheSumOfProductsHoweverStored) {
  constexpr int kM = 3, kN = 259, kK = 67;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      StageOp op;
      op.rows = kM;
      op.columns = kN;
      op.inner = kK;
      op.transpose_a = transpose_a;
      op.transpose_b = transpose_b;
      OpCase gemm(op);
      gemm.Run();
      const Numbers &a = gemm.inputs[0], &b = gemm.inputs[1];
      Numbers expected;
      for (int i = 0; i < kM; ++i) {
        for (int j = 0; j < kN; ++j) {
          double sum = 0;
          for (int l = 0; l < kK; ++l) {
            sum += (transpose_a ? a[l * kM + i] : a[i * kK + l]) *
                   (transpose_b ? b[j * kK + l] : b[l * kN + j]);
          }
          expected.push_back(sum);
        }
      }
      ExpectSame(gemm.outputs[0], expected, 1e-14);
    }
  }
}

// Checks views: the input and output are column blocks of wider tensors.
TEST(ReferenceOpsTest, RowsAreTheirViewsStrideApart) {
  StageOp op;
  op.kind = OpKind::kGeluForward;
  op.rows = 2;
  op.columns = 2;
  op.inputs = {{.buffer = 0, .offset = 1, .stride = 5}, {}};
  op.outputs = {{.buffer = 1, .stride = 3}};
  const Numbers x = {9, 1, 2, 9, 9, 9, 3, 4, 9, 9};
  Numbers y(6, -7);
  const double* inputs[] = {&x[1], nullptr};
  double* outputs[] = {y.data()};
  RunReference(op, inputs, outputs);
  OpCase dense(op);
  dense.op.inputs.clear();
  dense.op.outputs.clear();
  dense.inputs = {{1, 2, 3, 4}, {}};
  dense.Run();
  const Numbers& g = dense.outputs[0];
  EXPECT_EQ(y, (Numbers{g[0], g[1], -7, g[2], g[3], -7}));
}

// Kingma and Ba 2015, algorithm 1, with the decoupled decay of Loshchilov and
// Hutter 2019, algorithm 2. Both are written out from the papers element by
// element.
TEST(ReferenceOpsTest, AdamIsThePapersForThreeSteps) {
  StageOp op;
  op.kind = OpKind::kAdam;
  op.rows = 1;
  op.columns = 2;
  op.adam = {.learning_rate = 0.125F,
             .beta1 = 0.75F,
             .beta2 = 0.875F,
             .epsilon = 0.0078125F,
             .weight_decay = 0.25F};
  OpCase adam(op);
  adam.outputs[1] = {1.5, -2};
  const double gradients[3][2] = {{0.5, 3}, {-1, 2}, {0.25, -4}};
  for (int j = 0; j < 2; ++j) {
    OpCase run = adam;
    double theta = adam.outputs[1][j], m = 0, v = 0;
    for (int t = 1; t <= 3; ++t) {
      const double g = gradients[t - 1][j];
      m = 0.75 * m + 0.25 * g;
      v = 0.875 * v + 0.125 * g * g;
      const double m_hat = m / (1 - std::pow(0.75, t));
      const double v_hat = v / (1 - std::pow(0.875, t));
      theta -= 0.125 * (m_hat / (std::sqrt(v_hat) + 0.0078125) + 0.25 * theta);
      run.op.adam.step = t;
      run.outputs[0] = {gradients[t - 1][0], gradients[t - 1][1]};
      run.Run();
      EXPECT_NEAR(run.outputs[1][j], theta, 1e-14);
      EXPECT_EQ(run.outputs[4][j], run.outputs[1][j]);
      EXPECT_EQ(run.outputs[0][j], 0);
    }
  }
}

TEST(ReferenceOpsTest, ClearLeavesZeros) {
  StageOp op;
  op.kind = OpKind::kClear;
  op.rows = 2;
  op.columns = 3;
  OpCase clear(op);
  clear.outputs[0] = Normal(6, 1);
  clear.Run();
  EXPECT_EQ(clear.outputs[0], Numbers(6, 0));
}

// Checks that losses decrease along the gradient.
TEST(ReferenceOpsTest, CrossEntropyFallsAlongItsGradient) {
  StageOp op;
  op.kind = OpKind::kCrossEntropy;
  op.rows = 2;
  op.columns = 7;
  OpCase loss(op);
  loss.inputs[1] = {3, 0};
  Numbers logits = loss.inputs[0];
  double before = 1e9;
  for (int step = 0; step < 5; ++step) {
    loss.outputs[0] = logits;
    loss.Run();
    const double now = loss.outputs[1][0] + loss.outputs[1][1];
    EXPECT_LT(now, before);
    before = now;
    for (int i = 0; i < 14; ++i) logits[i] -= 0.5 * loss.outputs[0][i];
  }
}

}  // namespace weir::calibrate::reference_ops_test
