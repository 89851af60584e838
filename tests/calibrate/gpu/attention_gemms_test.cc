// SPDX-License-Identifier: Apache-2.0
// Compares unfused attention, run launch by launch on the host, with the
// reference.
#include "calibrate/gpu/host/attention_gemms.h"

#include <cmath>
#include <set>

#include "tests/calibrate/execute/reference/op_case.h"
#include "tests/calibrate/gpu/column_major_host.h"

namespace weir::calibrate::attention_gemms_test {

StageOp Attention(OpKind kind, int heads, int kv_heads, bool causal) {
  StageOp op;
  op.kind = kind;
  op.sequences = 2;
  op.sequence_length = 5;
  op.heads = heads;
  op.kv_heads = kv_heads;
  op.head_size = 3;
  op.causal = causal;
  op.inputs.resize(NumInputs(kind));
  op.outputs.resize(NumOutputs(kind));
  return op;
}

void Multiply(const std::vector<AttentionGemm>& gemms, OpCase* attention) {
  const auto at = [&](const AttentionOperand& operand) {
    auto& list = operand.is_output ? attention->outputs : attention->inputs;
    return list[operand.index].data() + operand.offset;
  };
  for (const AttentionGemm& gemm : gemms) {
    MultiplyColumnMajor(InColumnMajor(gemm.shape), gemm.shape.num_batches,
                        gemm.shape.accumulate, at(gemm.b), at(gemm.a),
                        at(gemm.d));
  }
}

double ScaleOf(const StageOp& op) { return 1 / std::sqrt(op.head_size); }

void Softmax(const StageOp& op, Numbers* scores) {
  const int64_t s = op.sequence_length;
  for (size_t row = 0; row < scores->size() / s; ++row) {
    double sum = 0;
    for (int64_t column = 0; column < s; ++column) {
      double& score = (*scores)[row * s + column];
      const bool seen = !op.causal || column <= static_cast<int64_t>(row) % s;
      score = seen ? std::exp(score * ScaleOf(op)) : 0;
      sum += score;
    }
    for (int64_t j = 0; j < s; ++j) (*scores)[row * s + j] /= sum;
  }
}

void SoftmaxGradient(const StageOp& op, const Numbers& probabilities,
                     Numbers* gradient) {
  const int64_t s = op.sequence_length;
  for (size_t row = 0; row < gradient->size() / s; ++row) {
    double mean = 0;
    for (int64_t j = 0; j < s; ++j) {
      mean += probabilities[row * s + j] * (*gradient)[row * s + j];
    }
    for (int64_t j = 0; j < s; ++j) {
      double& g = (*gradient)[row * s + j];
      g = probabilities[row * s + j] * (g - mean) * ScaleOf(op);
    }
  }
}

class AttentionGemmsTest
    : public testing::TestWithParam<std::tuple<int, int, bool>> {
 protected:
  OpCase Case(OpKind kind) const {
    const auto [heads, kv_heads, causal] = GetParam();
    return OpCase(Attention(kind, heads, kv_heads, causal));
  }
};

TEST_P(AttentionGemmsTest, ForwardIsTheReferences) {
  OpCase expected = Case(OpKind::kAttentionForward), actual = expected;
  expected.Run();
  const AttentionGemms gemms = GemmsOfAttention(actual.op);
  Multiply(gemms.before, &actual);
  Softmax(actual.op, &actual.outputs[1]);
  Multiply(gemms.after, &actual);
  ExpectSame(actual.outputs[0], expected.outputs[0], 1e-13);
  ExpectSame(actual.outputs[1], expected.outputs[1], 1e-13);
}

TEST_P(AttentionGemmsTest, BackwardIsTheReferences) {
  OpCase forward = Case(OpKind::kAttentionForward);
  forward.Run();
  OpCase expected = Case(OpKind::kAttentionBackward);
  expected.inputs[1] = forward.outputs[0];
  expected.inputs[2] = forward.inputs[0];
  expected.inputs[3] = forward.outputs[1];
  OpCase actual = expected;
  expected.Run();
  const AttentionGemms gemms = GemmsOfAttention(actual.op);
  // Previous contents are overwritten.
  std::fill(actual.outputs[0].begin(), actual.outputs[0].end(), 1e6);
  Multiply(gemms.before, &actual);
  SoftmaxGradient(actual.op, actual.inputs[3], &actual.outputs[1]);
  Multiply(gemms.after, &actual);
  ExpectSame(actual.outputs[0], expected.outputs[0], 1e-13);
}

// One key head per query head; two and three query heads per key head; one key
// head for all query heads.
INSTANTIATE_TEST_SUITE_P(All, AttentionGemmsTest,
                         testing::Values(std::tuple(4, 4, true),
                                         std::tuple(4, 4, false),
                                         std::tuple(4, 2, true),
                                         std::tuple(6, 1, true),
                                         std::tuple(6, 2, false)));

TEST(AttentionGemmsTest, LaunchesAreFewWhereEachHeadHasItsKeys) {
  const StageOp op = Attention(OpKind::kAttentionForward, 8, 8, true);
  const AttentionGemms gemms = GemmsOfAttention(op);
  EXPECT_EQ(gemms.before.size(), 2u);  // one per sequence
  EXPECT_EQ(gemms.before[0].shape.num_batches, 8);
}

}  // namespace weir::calibrate::attention_gemms_test
