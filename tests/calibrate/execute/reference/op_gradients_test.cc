// SPDX-License-Identifier: Apache-2.0
// Compares every backward operation with central differences of its forward.
#include "calibrate/execute/reference/op_tensors.h"
#include "tests/calibrate/execute/reference/op_case.h"

namespace weir::calibrate::op_gradients_test {

StageOp Op(OpKind kind, int64_t rows, int64_t columns) {
  StageOp op;
  op.kind = kind;
  op.rows = rows;
  op.columns = columns;
  return op;
}

StageOp MakeGemm(int64_t m, int64_t n, int64_t k) {
  StageOp op = Op(OpKind::kGemm, m, n);
  op.inner = k;
  return op;
}

// y = x w^T with w stored as [out, in]: both gradients are GEMMs.
TEST(OpGradientsTest, GemmsOfALinearLayer) {
  constexpr int64_t kT = 5, kIn = 7, kOut = 3;
  StageOp op = MakeGemm(kT, kOut, kIn);
  op.transpose_b = true;
  op.epilogue = Epilogue::kBias;
  const OpCase forward(op);
  const Numbers dy = Normal(kT * kOut, 1);

  OpCase input(MakeGemm(kT, kIn, kOut));
  input.inputs = {dy, forward.inputs[1], {}};
  input.Run();
  ExpectSame(input.outputs[0], GradientOf(forward, 0, 0, dy));

  StageOp transposed = MakeGemm(kOut, kIn, kT);
  transposed.transpose_a = transposed.accumulate = true;
  OpCase weight(transposed);
  weight.inputs = {dy, forward.inputs[0], {}};
  weight.Run();
  const Numbers once = weight.outputs[0];
  ExpectSame(once, GradientOf(forward, 1, 0, dy));
  weight.Run();
  EXPECT_NEAR(weight.outputs[0][4], 2 * once[4], 1e-12);

  OpCase bias(Op(OpKind::kBiasGradient, kT, kOut));
  bias.inputs = {dy};
  bias.Run();
  ExpectSame(bias.outputs[0], GradientOf(forward, 2, 0, dy));
}

// z = gelu(x w^T + bias) v^T: the GEMM that computes dz v also computes the
// gradient of the pre-activation.
TEST(OpGradientsTest, GeluInTheEpiloguesOfGemms) {
  constexpr int64_t kT = 4, kIn = 3, kInner = 6, kOut = 5;
  StageOp first = MakeGemm(kT, kInner, kIn);
  first.transpose_b = true;
  first.epilogue = Epilogue::kBiasGelu;
  OpCase forward(first);
  const Numbers v = Normal(kOut * kInner, 11), dz = Normal(kT * kOut, 12);
  StageOp back = MakeGemm(kT, kInner, kOut);
  back.epilogue = Epilogue::kGeluGradient;
  OpCase backward(back);
  forward.Run();
  backward.inputs = {dz, v, forward.outputs[1]};
  backward.Run();
  const auto loss = [&] {
    OpCase run = forward;
    run.Run();
    StageOp second = MakeGemm(kT, kOut, kInner);
    second.transpose_b = true;
    OpCase next(second);
    next.inputs = {run.outputs[0], v, {}};
    next.Run();
    return Dot(next.outputs[0], dz);
  };
  OpCase bias(Op(OpKind::kBiasGradient, kT, kInner));
  bias.inputs = {backward.outputs[0]};
  bias.Run();
  ExpectSame(bias.outputs[0], Differences(&forward.inputs[2], loss));
  OpCase input(MakeGemm(kT, kIn, kInner));
  input.inputs = {backward.outputs[0], forward.inputs[1], {}};
  input.Run();
  ExpectSame(input.outputs[0], Differences(&forward.inputs[0], loss));
}

Numbers Mask(int64_t n) {
  Numbers mask(n);
  for (int64_t i = 0; i < n; ++i) mask[i] = i % 3 == 1 ? 0 : 1;
  return mask;
}

class NormGradientsTest : public testing::TestWithParam<bool> {};

// The gradient of the sum also arrives on the residual path.
TEST_P(NormGradientsTest, OfSumGainShiftAndWhatWasAdded) {
  constexpr int64_t kRows = 4, kColumns = 7;
  StageOp op = Op(OpKind::kNormForward, kRows, kColumns);
  op.rms = GetParam();
  op.dropout = 0.25F;
  OpCase forward(op);
  forward.inputs[3] = Mask(kRows * kColumns);
  if (op.rms) forward.inputs[5].clear();
  OpCase run = forward;
  run.Run();
  EXPECT_EQ(run.outputs[3], forward.inputs[3]);

  const Numbers dy = Normal(kRows * kColumns, 5);
  const Numbers residual = Normal(kRows * kColumns, 6);
  op.kind = OpKind::kNormBackward;
  OpCase backward(op);
  backward.inputs = {dy, run.outputs[0], run.outputs[2], forward.inputs[4],
                     residual};
  if (op.rms) backward.outputs[2].clear();
  backward.Run();
  const auto loss = [&] {
    OpCase again = forward;
    again.Run();
    return Dot(again.outputs[1], dy) + Dot(again.outputs[0], residual);
  };
  const Numbers dsum = backward.outputs[0];
  ExpectSame(dsum, Differences(&forward.inputs[0], loss));
  ExpectSame(backward.outputs[1], Differences(&forward.inputs[4], loss));
  if (!op.rms) {
    ExpectSame(backward.outputs[2], Differences(&forward.inputs[5], loss));
  }
  op.kind = OpKind::kDropoutBackward;
  OpCase dropout(op);
  dropout.inputs = {dsum, run.outputs[3]};
  dropout.Run();
  ExpectSame(dropout.outputs[0], Differences(&forward.inputs[1], loss));
  OpCase bias(Op(OpKind::kBiasGradient, kRows, kColumns));
  bias.inputs = {dropout.outputs[0]};
  bias.Run();
  ExpectSame(bias.outputs[0], Differences(&forward.inputs[2], loss));
}
INSTANTIATE_TEST_SUITE_P(BothNorms, NormGradientsTest, testing::Bool());

TEST(OpGradientsTest, ResidualWithoutNorm) {
  StageOp op = Op(OpKind::kResidualForward, 3, 5);
  op.dropout = 0.5F;
  op.seed = 7;
  OpCase forward(op);
  OpCase run = forward;
  run.Run();
  op.kind = OpKind::kDropoutBackward;
  OpCase backward(op);
  const Numbers d = Normal(15, 8);
  backward.inputs = {d, run.outputs[1]};
  backward.Run();
  ExpectSame(GradientOf(forward, 0, 0, d), d);
  ExpectSame(backward.outputs[0], GradientOf(forward, 1, 0, d));
}

// Without a mask, the seed determines which elements are dropped, at about the
// requested rate.
TEST(OpGradientsTest, DropoutKeepsItsShareAndTheMean) {
  StageOp op = Op(OpKind::kResidualForward, 100, 1000);
  op.dropout = 0.1F;
  op.seed = 1;
  OpCase forward(op);
  std::fill(forward.inputs[0].begin(), forward.inputs[0].end(), 0.0);
  std::fill(forward.inputs[1].begin(), forward.inputs[1].end(), 1.0);
  forward.inputs[2].clear();
  forward.Run();
  const Numbers ones(100'000, 1);
  // Five standard deviations of the observed fraction are 0.005.
  EXPECT_NEAR(Dot(forward.outputs[1], ones) / 1e5, 0.9, 0.005);
  EXPECT_NEAR(Dot(forward.outputs[0], ones) / 1e5, 1, 0.006);
}

TEST(OpGradientsTest, GeluApart) {
  OpCase forward(Op(OpKind::kGeluForward, 3, 5));
  OpCase backward(Op(OpKind::kGeluBackward, 3, 5));
  const Numbers dy = Normal(15, 2);
  backward.inputs = {dy, forward.inputs[0], forward.inputs[1]};
  backward.Run();
  ExpectSame(backward.outputs[0], GradientOf(forward, 0, 0, dy));
  // The value of the tanh form of GELU at 1, computed by hand.
  EXPECT_NEAR(Gelu(1), 0.5 * (1 + std::tanh(0.7978845608 * 1.044715)), 1e-9);
}

TEST(OpGradientsTest, GatedActivation) {
  const OpCase forward(Op(OpKind::kGatedForward, 3, 5));
  OpCase backward(Op(OpKind::kGatedBackward, 3, 5));
  const Numbers dy = Normal(15, 2);
  backward.inputs = {dy, forward.inputs[0]};
  backward.Run();
  ExpectSame(backward.outputs[0], GradientOf(forward, 0, 0, dy));
}

TEST(OpGradientsTest, Embedding) {
  StageOp op = Op(OpKind::kEmbeddingForward, 6, 4);
  op.inner = 5;
  op.sequences = 2;
  op.sequence_length = 3;
  OpCase forward(op);
  forward.inputs[0] = {0, 4, 1, 4, 2, 2};
  op.kind = OpKind::kEmbeddingBackward;
  OpCase backward(op);
  const Numbers dy = Normal(24, 2);
  backward.inputs = {dy, forward.inputs[0]};
  backward.Run();
  ExpectSame(backward.outputs[0], GradientOf(forward, 1, 0, dy));
  ExpectSame(backward.outputs[1], GradientOf(forward, 2, 0, dy));
}

TEST(OpGradientsTest, CrossEntropy) {
  StageOp op = Op(OpKind::kCrossEntropy, 3, 5);
  op.loss_scale = 0.25F;
  OpCase forward(op);
  forward.inputs[1] = {0, 4, 2};
  Numbers logits = forward.inputs[0];
  const auto run = [&] {
    forward.outputs[0] = logits;  // in place
    forward.Run();
    return forward.outputs;
  };
  const Numbers gradient = run()[0];
  ExpectSame(gradient, Differences(&logits, [&] {
               const Numbers losses = run()[1];
               return 0.25 * (losses[0] + losses[1] + losses[2]);
             }));
}

}  // namespace weir::calibrate::op_gradients_test
