// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include "tests/calibrate/execute/reference/op_case.h"

namespace weir::calibrate::attention_gradients_test {

StageOp Attention(OpKind kind, bool causal, int kv_heads, bool fused) {
  StageOp op;
  op.kind = kind;
  op.sequences = 2;
  op.sequence_length = 5;
  op.heads = 6;
  op.kv_heads = kv_heads;
  op.head_size = 4;
  op.causal = causal;
  op.fused = fused;
  return op;
}

OpCase Backward(const OpCase& forward, const Numbers& d_o) {
  StageOp op = forward.op;
  op.kind = OpKind::kAttentionBackward;
  OpCase backward(op);
  backward.inputs = {d_o, forward.outputs[0], forward.inputs[0],
                     forward.outputs[1]};
  backward.Run();
  return backward;
}

class AttentionGradientsTest
    : public testing::TestWithParam<std::tuple<bool, int, bool>> {};

TEST_P(AttentionGradientsTest, AreThoseOfDifferences) {
  const auto [causal, kv_heads, fused] = GetParam();
  OpCase forward(Attention(OpKind::kAttentionForward, causal, kv_heads, fused));
  const Numbers d_o = Normal(forward.outputs[0].size(), 4);
  const Numbers expected = GradientOf(forward, 0, 0, d_o);
  forward.Run();
  ExpectSame(Backward(forward, d_o).outputs[0], expected);
}
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionGradientsTest,
                         testing::Combine(testing::Bool(),
                                          testing::Values(6, 2, 1),
                                          testing::Bool()));

TEST(AttentionTest, FusedAndUnfusedAreTheSame) {
  for (const bool causal : {false, true}) {
    OpCase fused(Attention(OpKind::kAttentionForward, causal, 2, true));
    OpCase apart(Attention(OpKind::kAttentionForward, causal, 2, false));
    fused.Run();
    apart.Run();
    const Numbers d_o = Normal(fused.outputs[0].size(), 4);
    ExpectSame(fused.outputs[0], apart.outputs[0], 1e-14);
    ExpectSame(Backward(fused, d_o).outputs[0], Backward(apart, d_o).outputs[0],
               1e-13);
  }
}

// Zero queries weight all visible keys equally, so the output is the mean of
// the values so far.
TEST(AttentionTest, WithoutScoresIsTheMeanOfWhatACausalQuerySees) {
  StageOp op = Attention(OpKind::kAttentionForward, true, 6, true);
  OpCase forward(op);
  const int width = 18 * 4;
  for (int token = 0; token < 10; ++token) {
    for (int j = 0; j < 24; ++j) forward.inputs[0][token * width + j] = 0;
  }
  forward.Run();
  const auto value = [&](int token) {
    return forward.inputs[0][token * width + 48];
  };
  const auto output = [&](int token) {
    const int first = token * 24;
    return forward.outputs[0][first];
  };
  EXPECT_NEAR(output(5), value(5), 1e-12);
  EXPECT_NEAR(output(7), (value(5) + value(6) + value(7)) / 3, 1e-12);
  EXPECT_NEAR(forward.outputs[1][6 * 5 + 2], std::log(3), 1e-12);
}

// Su et al. 2021: scores depend only on the distance. The backward rotation
// restores the input.
TEST(AttentionTest, RotaryScoresDependOnTheDistanceAlone) {
  StageOp op = Attention(OpKind::kRotaryForward, true, 2, true);
  OpCase forward(op);
  const int width = 10 * 4;
  for (int token = 1; token < 10; ++token) {
    const int first = token * width;
    std::copy_n(forward.inputs[0].begin(), width,
                forward.inputs[0].begin() + first);
  }
  forward.outputs[0] = forward.inputs[0];  // in place
  forward.Run();
  const Numbers& turned = forward.outputs[0];
  const auto score = [&](int query, int key) {
    double sum = 0;
    for (int j = 0; j < 4; ++j) {
      sum += turned[query * width + j] * turned[key * width + 24 + j];
    }
    return sum;
  };
  EXPECT_NEAR(score(3, 1), score(4, 2), 1e-12);
  EXPECT_NEAR(score(8, 6), score(4, 2), 1e-12);  // in the second sequence
  EXPECT_GT(std::abs(score(3, 0) - score(3, 1)), 1e-3);
  // Values are unchanged.
  EXPECT_EQ(turned[3 * width + 33], forward.inputs[0][3 * width + 33]);
  op.kind = OpKind::kRotaryBackward;
  OpCase backward(op);
  backward.outputs[0] = turned;
  backward.Run();
  ExpectSame(backward.outputs[0], forward.inputs[0], 1e-14);
}

}  // namespace weir::calibrate::attention_gradients_test
