// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/gpu/kernels/kernel_cases.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "calibrate/execute/stage/op_shapes.h"

namespace weir::calibrate {
namespace {

constexpr ElementFormat kFormats[] = {ElementFormat::kBf16,
                                      ElementFormat::kFp16};

class Cases {
 public:
  // Adds `op` in both formats, without the inputs and outputs at the given
  // indices.
  void Add(StageOp op, const std::string& variant,
           std::initializer_list<int> no_inputs = {},
           std::initializer_list<int> no_outputs = {}) {
    op.inputs.assign(NumInputs(op.kind), TensorView{0});
    op.outputs.assign(NumOutputs(op.kind), TensorView{0});
    for (int i : no_inputs) op.inputs[i].buffer = -1;
    for (int i : no_outputs) op.outputs[i].buffer = -1;
    for (ElementFormat format : kFormats) {
      cases_.push_back(
          {op, format,
           absl::StrCat(Name(op.kind), "_", variant, "_", Name(format))});
    }
  }

  std::vector<KernelCase> Take() { return std::move(cases_); }

 private:
  std::vector<KernelCase> cases_;
};

StageOp Rows(OpKind kind, int64_t rows, int64_t columns) {
  StageOp op;
  op.kind = kind;
  op.rows = rows;
  op.columns = columns;
  op.seed = 0x123456789ABCDEF;
  return op;
}

StageOp Dropping(StageOp op) {
  op.dropout = 0.1F;
  return op;
}
StageOp Rms(StageOp op) {
  op.rms = true;
  return op;
}

void AddNorms(Cases* cases) {
  constexpr OpKind kForward = OpKind::kNormForward;
  constexpr OpKind kBackward = OpKind::kNormBackward;
  cases->Add(Rows(kForward, 3, 8), "plain_3x8", {1, 2, 3}, {0, 3});
  cases->Add(Rows(kForward, 5, 776), "delta_5x776", {2, 3}, {3});
  cases->Add(Dropping(Rows(kForward, 7, 1032)), "dropout_7x1032", {3});
  cases->Add(Dropping(Rows(kForward, 3, 264)), "mask_in_3x264", {});
  cases->Add(Rms(Rows(kForward, 2, 4096)), "rms_2x4096", {2, 3, 5}, {3});
  cases->Add(Rms(Rows(kForward, 2, 9000)), "rms_2x9000", {1, 2, 3, 5}, {0, 3});
  cases->Add(Rows(kBackward, 13, 8), "13x8");
  cases->Add(Rows(kBackward, 101, 776), "101x776");
  cases->Add(Rows(kBackward, 5, 1032), "no_residual_5x1032", {4});
  cases->Add(Rms(Rows(kBackward, 9, 4096)), "rms_9x4096", {}, {2});
  cases->Add(Rms(Rows(kBackward, 7, 9000)), "rms_7x9000", {4}, {2});
}

void AddActivations(Cases* cases) {
  cases->Add(Rows(OpKind::kBiasGradient, 1, 8), "1x8");
  cases->Add(Rows(OpKind::kBiasGradient, 333, 520), "333x520");
  cases->Add(Rows(OpKind::kBiasGradient, 70, 4096), "70x4096");
  cases->Add(Rows(OpKind::kResidualForward, 5, 776), "5x776", {2}, {1});
  cases->Add(Dropping(Rows(OpKind::kResidualForward, 3, 4096)),
             "dropout_3x4096");
  cases->Add(Dropping(Rows(OpKind::kDropoutBackward, 5, 1032)), "5x1032");
  for (OpKind kind : {OpKind::kGeluForward, OpKind::kGeluBackward}) {
    const int bias = kind == OpKind::kGeluForward ? 1 : 2;
    cases->Add(Rows(kind, 7, 8), "7x8", {bias});
    cases->Add(Rows(kind, 3, 4104), "bias_3x4104");
  }
  for (OpKind kind : {OpKind::kGatedForward, OpKind::kGatedBackward}) {
    cases->Add(Rows(kind, 7, 8), "7x8");
    cases->Add(Rows(kind, 3, 2728), "3x2728");
  }
}

StageOp Tokens(OpKind kind, int64_t sequences, int64_t length,
               int64_t columns) {
  StageOp op = Rows(kind, sequences * length, columns);
  op.sequences = sequences;
  op.sequence_length = length;
  op.inner = 17;  // vocabulary: tokens appear more than once
  return op;
}

StageOp Heads(StageOp op, int heads, int kv_heads, int head_size) {
  op.heads = heads;
  op.kv_heads = kv_heads;
  op.head_size = head_size;
  return op;
}

void AddEnds(Cases* cases) {
  for (OpKind kind : {OpKind::kRotaryForward, OpKind::kRotaryBackward}) {
    cases->Add(Heads(Tokens(kind, 2, 5, 0), 3, 1, 16), "2x5_3_1_16");
    cases->Add(Heads(Tokens(kind, 1, 37, 0), 4, 2, 128), "1x37_4_2_128");
  }
  cases->Add(Tokens(OpKind::kEmbeddingForward, 3, 7, 776), "3x7x776");
  cases->Add(Tokens(OpKind::kEmbeddingForward, 2, 5, 8), "2x5x8", {2});
  cases->Add(Tokens(OpKind::kEmbeddingBackward, 3, 7, 776), "3x7x776");
  cases->Add(Tokens(OpKind::kEmbeddingBackward, 2, 5, 8), "2x5x8", {}, {1});
  StageOp loss = Rows(OpKind::kCrossEntropy, 5, 8);
  cases->Add(loss, "5x8");
  loss.columns = 10008;
  loss.loss_scale = 0.25F;
  cases->Add(loss, "5x10008");
  StageOp adam = Rows(OpKind::kAdam, 3, 1000);
  cases->Add(adam, "3x1000");
  adam.columns = 83;  // the last thread has one parameter
  adam.adam.step = 7;
  adam.adam.weight_decay = 0.1F;
  adam.adam.gradient_scale = 0.25F;
  cases->Add(adam, "decay_3x83");
  cases->Add(Rows(OpKind::kClear, 3, 83), "3x83");
}

StageOp Attention(OpKind kind, int64_t sequences, int64_t length, bool causal) {
  StageOp op = Tokens(kind, sequences, length, 0);
  op.fused = true;
  op.causal = causal;
  return op;
}

}  // namespace

std::vector<KernelCase> RowCases() {
  Cases cases;
  AddNorms(&cases);
  AddActivations(&cases);
  AddEnds(&cases);
  return cases.Take();
}

std::vector<KernelCase> AttentionCases() {
  Cases cases;
  for (OpKind kind : {OpKind::kAttentionForward, OpKind::kAttentionBackward}) {
    cases.Add(Heads(Attention(kind, 2, 1, true), 1, 1, 64), "2x1_1_1_64");
    for (int head_size : {64, 128}) {
      for (bool causal : {false, true}) {
        const char* mask = causal ? "causal" : "full";
        const auto add = [&](int64_t sequences, int64_t length, int heads,
                             int kv_heads) {
          cases.Add(Heads(Attention(kind, sequences, length, causal), heads,
                          kv_heads, head_size),
                    absl::StrCat(mask, "_", sequences, "x", length, "_", heads,
                                 "_", kv_heads, "_", head_size));
        };
        add(2, 33, 4, 2);
        add(1, 200, 2, 2);
        add(1, 256, 1, 1);
      }
    }
    cases.Add(Heads(Attention(kind, 1, 333, true), 3, 1, 128),
              "causal_1x333_3_1_128");
  }
  return cases.Take();
}

}  // namespace weir::calibrate
