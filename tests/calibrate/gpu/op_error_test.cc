// SPDX-License-Identifier: Apache-2.0
// Checks that a sample of an operation shows the errors of the whole operation.
#include "calibrate/gpu/host/op_error.h"

#include <cmath>
#include <limits>

#include "calibrate/execute/stage/dropout_mask.h"
#include "calibrate/gpu/host/attention_sample.h"
#include "tests/calibrate/execute/reference/op_case.h"

namespace weir::calibrate::op_error_test {

StageOp Op(OpKind kind, int64_t rows, int64_t columns) {
  StageOp op;
  op.kind = kind;
  op.rows = rows;
  op.columns = columns;
  op.sequences = 2;
  op.sequence_length = 24;
  op.heads = 4;
  op.kv_heads = 2;
  op.head_size = 8;
  op.causal = true;
  op.fused = true;
  op.seed = 99;
  op.loss_scale = 0.5F;
  return op;
}

bool UpdatesInPlace(OpKind kind) {
  return kind == OpKind::kAdam || kind == OpKind::kClear ||
         kind == OpKind::kRotaryForward || kind == OpKind::kRotaryBackward;
}

// Adds views of distinct buffers. Buffers updated in place are in both lists.
void AddViews(StageOp* op) {
  op->inputs.resize(NumInputs(op->kind));
  op->outputs.resize(NumOutputs(op->kind));
  for (size_t i = 0; i < op->inputs.size(); ++i) {
    op->inputs[i].buffer = static_cast<int>(i);
  }
  for (size_t i = 0; i < op->outputs.size(); ++i) {
    op->outputs[i].buffer = static_cast<int>(100 + i);
  }
  if (UpdatesInPlace(op->kind)) op->outputs = op->inputs;
  if (op->kind == OpKind::kCrossEntropy) op->outputs[0] = op->inputs[0];
}

void MakeTokens(int64_t limit, Numbers* numbers) {
  for (size_t i = 0; i < numbers->size(); ++i) {
    (*numbers)[i] = static_cast<double>((7 * i + 3) % limit);
  }
}

// Returns valid inputs for the operation.
OpCase MakeCase(StageOp op) {
  AddViews(&op);
  OpCase made(op);
  switch (op.kind) {
    case OpKind::kGemm:
      if (op.epilogue != Epilogue::kBiasGelu) made.outputs[1].clear();
      break;
    case OpKind::kNormForward:
      made.inputs[3].clear();  // the mask follows from the seed
      if (op.dropout == 0) made.outputs[3].clear();
      break;
    case OpKind::kResidualForward:
      if (op.dropout == 0) made.outputs[1].clear();
      break;
    case OpKind::kEmbeddingForward:
      MakeTokens(op.inner, &made.inputs[0]);
      break;
    case OpKind::kEmbeddingBackward:
      MakeTokens(op.inner, &made.inputs[1]);
      break;
    case OpKind::kCrossEntropy:
      MakeTokens(op.columns, &made.inputs[1]);
      break;
    case OpKind::kAdam:
      for (double& v : made.inputs[3]) v = std::fabs(v);
      break;
    case OpKind::kAttentionBackward: {
      StageOp forward = op;
      forward.kind = OpKind::kAttentionForward;
      AddViews(&forward);
      OpCase before(forward);
      before.inputs[0] = made.inputs[2];
      before.Run();
      made.inputs[1] = before.outputs[0];
      made.inputs[3] = before.outputs[1];
      break;
    }
    default:
      break;
  }
  for (size_t i = 0; i < made.outputs.size(); ++i) {
    if (!ReadsOutput(op, static_cast<int>(i))) continue;
    made.outputs[i] = Normal(made.outputs[i].size(), 1000 + i);
    for (size_t j = 0; j < op.inputs.size(); ++j) {
      if (op.inputs[j].buffer == op.outputs[i].buffer) {
        made.outputs[i] = made.inputs[j];
      }
    }
  }
  return made;
}

HostTensor Store(const Numbers& numbers, const TensorShape& shape) {
  HostTensor tensor{ElementFormat::kFp32, shape.columns, {}};
  tensor.bytes.resize(4 * numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    WriteElement(ElementFormat::kFp32, numbers[i], &tensor.bytes[4 * i]);
  }
  return tensor;
}

// Emulates a device that computes in double precision and stores fp32.
OpCopies RunOnDevice(const StageOp& op) {
  OpCase device = MakeCase(op);
  OpCopies copies;
  for (size_t i = 0; i < device.inputs.size(); ++i) {
    copies.inputs.push_back(
        Store(device.inputs[i], InputShape(op, static_cast<int>(i))));
  }
  for (size_t i = 0; i < device.outputs.size(); ++i) {
    const int output = static_cast<int>(i);
    const bool read =
        ReadsOutput(device.op, output) && SameInput(device.op, output) < 0;
    copies.outputs_before.push_back(
        read ? Store(device.outputs[i], OutputShape(op, static_cast<int>(i)))
             : HostTensor{});
  }
  device.Run();
  for (size_t i = 0; i < device.outputs.size(); ++i) {
    copies.outputs.push_back(
        Store(device.outputs[i], OutputShape(op, static_cast<int>(i))));
  }
  return copies;
}

void Change(HostTensor* tensor, double factor) {
  for (size_t i = 0; i < tensor->bytes.size(); i += 4) {
    const double value = ReadElement(ElementFormat::kFp32, &tensor->bytes[i]);
    WriteElement(ElementFormat::kFp32, factor * value, &tensor->bytes[i]);
  }
}

struct Named {
  std::string name;
  StageOp op;
};
void PrintTo(const Named& printed, std::ostream* out) { *out << printed.name; }

StageOp MakeGemm(bool transpose_a, bool transpose_b, Epilogue epilogue) {
  StageOp op = Op(OpKind::kGemm, 60, 70);
  op.inner = 50;
  op.transpose_a = transpose_a;
  op.transpose_b = transpose_b;
  op.epilogue = epilogue;
  return op;
}

std::vector<Named> AllOps() {
  std::vector<Named> ops = {
      {"Product", MakeGemm(false, false, Epilogue::kNone)},
      {"ProductOfWeightGradient", MakeGemm(true, false, Epilogue::kNone)},
      {"ProductWithGelu", MakeGemm(false, true, Epilogue::kBiasGelu)},
      {"ProductWithGeluGradient",
       MakeGemm(false, false, Epilogue::kGeluGradient)}};
  ops[1].op.accumulate = true;
  const std::pair<const char*, OpKind> plain[] = {
      {"BiasGradient", OpKind::kBiasGradient},
      {"NormForward", OpKind::kNormForward},
      {"NormBackward", OpKind::kNormBackward},
      {"DropoutBackward", OpKind::kDropoutBackward},
      {"ResidualForward", OpKind::kResidualForward},
      {"GeluForward", OpKind::kGeluForward},
      {"GeluBackward", OpKind::kGeluBackward},
      {"GatedForward", OpKind::kGatedForward},
      {"GatedBackward", OpKind::kGatedBackward},
      {"RotaryForward", OpKind::kRotaryForward},
      {"AttentionForward", OpKind::kAttentionForward},
      {"AttentionBackward", OpKind::kAttentionBackward},
      {"EmbeddingForward", OpKind::kEmbeddingForward},
      {"EmbeddingBackward", OpKind::kEmbeddingBackward},
      {"CrossEntropy", OpKind::kCrossEntropy}};
  for (const auto& [name, kind] : plain) {
    ops.push_back({name, Op(kind, 48, 40)});
    ops.back().op.inner = 31;  // vocabulary
  }
  ops.push_back({"NormForwardWithDropout", Op(OpKind::kNormForward, 48, 40)});
  ops.back().op.dropout = 0.25F;
  ops.push_back({"ResidualWithDropout", Op(OpKind::kResidualForward, 48, 40)});
  ops.back().op.dropout = 0.25F;
  ops.push_back({"Adam", Op(OpKind::kAdam, 1, 2000)});
  for (const char* name :
       {"UnfusedAttentionForward", "UnfusedAttentionBackward"}) {
    ops.push_back({name, Op(name[16] == 'F' ? OpKind::kAttentionForward
                                            : OpKind::kAttentionBackward,
                            48, 40)});
    ops.back().op.fused = false;
  }
  return ops;
}

class OpErrorTest : public testing::TestWithParam<Named> {
 protected:
  const StageOp& op() const { return GetParam().op; }
  // Returns the costs of the whole operation and of a tenth of it.
  std::vector<double> Limits() const { return {1e18, HostCost(op()) / 10}; }
};

// Inputs are rounded to fp32.
constexpr double kFp32 = 3e-7;

TEST_P(OpErrorTest, WhatIsRightIsFoundRight) {
  const OpCopies copies = RunOnDevice(op());
  for (const double limit : Limits()) {
    EXPECT_LE(RelativeError(MakeCase(op()).op, copies, limit), 30 * kFp32);
  }
}

TEST_P(OpErrorTest, AnErrorOfFivePercentIsFoundInEveryOutput) {
  const StageOp with_views = MakeCase(op()).op;
  const bool is_backward = op().kind == OpKind::kAttentionBackward;
  for (size_t i = 0; i < with_views.outputs.size(); ++i) {
    if (is_backward && i == 1) continue;  // scratch
    OpCopies copies = RunOnDevice(op());
    if (!copies.outputs[i].present()) continue;
    if (op().kind == OpKind::kAdam && i == 0) continue;  // cleared to 0
    Change(&copies.outputs[i], 1.05);
    for (const double limit : Limits()) {
      EXPECT_NEAR(RelativeError(with_views, copies, limit), 0.05, 1e-5)
          << "output " << i << " limit " << limit;
    }
  }
}

TEST_P(OpErrorTest, ANanIsInfinitelyWrong) {
  OpCopies copies = RunOnDevice(op());
  Change(&copies.outputs[0], std::numeric_limits<double>::quiet_NaN());
  for (const double limit : Limits()) {
    EXPECT_TRUE(std::isinf(RelativeError(MakeCase(op()).op, copies, limit)));
  }
}

TEST_P(OpErrorTest, ASampleCostsWhatTheLimitAllows) {
  const double limit = HostCost(op()) / 3;
  const StageOp smaller = SampleOp(op(), limit).op;
  if (op().kind == OpKind::kAttentionForward ||
      op().kind == OpKind::kAttentionBackward) {
    // The smallest sample is one sequence and the heads that share its keys.
    EXPECT_EQ(smaller.sequences, 1);
    EXPECT_EQ(smaller.kv_heads, 1);
  } else {
    EXPECT_LE(HostCost(smaller), limit);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpErrorTest, testing::ValuesIn(AllOps()),
                         [](const auto& info) { return info.param.name; });

class AttentionSampleTest : public testing::TestWithParam<Named> {};

TEST_P(AttentionSampleTest, SingleQueriesAndKeysAgreeWithTheReference) {
  const StageOp& op = GetParam().op;
  OpCopies copies = RunOnDevice(op);
  EXPECT_LE(AttentionSampleError(op, copies, 9), 30 * kFp32);
  Change(&copies.outputs[0], 1.05);
  EXPECT_NEAR(AttentionSampleError(op, copies, 9), 0.05, 1e-5);
}

std::vector<Named> AttentionOps() {
  std::vector<Named> found;
  for (const Named& named : AllOps()) {
    if (named.name.find("Attention") == std::string::npos) continue;
    found.push_back(named);
    found.push_back({named.name + "OfAllKeys", named.op});
    found.back().op.causal = false;
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(All, AttentionSampleTest,
                         testing::ValuesIn(AttentionOps()),
                         [](const auto& info) { return info.param.name; });

TEST(OpErrorTest, ReadsWhatItAddsToOrUpdates) {
  StageOp op = MakeGemm(true, false, Epilogue::kNone);
  AddViews(&op);
  EXPECT_FALSE(ReadsOutput(op, 0));
  op.accumulate = true;
  EXPECT_TRUE(ReadsOutput(op, 0));
  StageOp loss = Op(OpKind::kCrossEntropy, 4, 4);
  AddViews(&loss);
  EXPECT_TRUE(ReadsOutput(loss, 0));
  EXPECT_FALSE(ReadsOutput(loss, 1));
}

TEST(PickSomeTest, TakesOneOfEachPartAndTheLast) {
  const std::vector<int64_t> picked = PickSome(1000, 10);
  ASSERT_EQ(picked.size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(picked[i] / 100, i);
  EXPECT_EQ(picked.back(), 999);
  EXPECT_EQ(PickSome(3, 10), (std::vector<int64_t>{0, 1, 2}));
}

TEST(CopiedPartsTest, OfALargeUpdateSomeElementsAreCopied) {
  StageOp adam;
  adam.kind = OpKind::kAdam;
  adam.rows = 1;
  adam.columns = 1000000000;
  adam.inputs = {{.buffer = 0},
                 {.buffer = 1},
                 {.buffer = 1, .offset = adam.columns},
                 {.buffer = 1, .offset = 2 * adam.columns},
                 {.buffer = 2}};
  adam.outputs = adam.inputs;
  const std::vector<StageOp> parts = CopiedParts(adam, 3000);
  ASSERT_EQ(parts.size(), 3);
  const int64_t first[] = {0, 499999500, 999999000};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(parts[i].columns, 1000);
    EXPECT_EQ(parts[i].inputs[0].offset, first[i]);
    EXPECT_EQ(parts[i].inputs[2].offset, adam.columns + first[i]);
    EXPECT_EQ(parts[i].outputs[4].offset, first[i]);
    EXPECT_EQ(SameInput(parts[i], 3), 3);  // still in place
  }
  adam.columns = 3000;
  EXPECT_EQ(CopiedParts(adam, 3000).size(), 1);
  StageOp norm;
  norm.kind = OpKind::kNormForward;
  norm.rows = norm.columns = 1 << 20;
  EXPECT_EQ(CopiedParts(norm).size(), 1);
}

}  // namespace weir::calibrate::op_error_test
