// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage/op_shapes.h"

#include <vector>

namespace weir::calibrate {
namespace {

struct OpTensors {
  std::vector<TensorShape> inputs, outputs;
};

TensorShape Half(int64_t rows, int64_t columns) { return {rows, columns}; }

TensorShape Other(int64_t rows, int64_t columns) {
  return {rows, columns, false};
}

OpTensors AttentionTensors(const StageOp& op) {
  const int64_t tokens = op.sequences * op.sequence_length;
  const int64_t width = int64_t{op.heads + 2 * op.kv_heads} * op.head_size;
  const TensorShape packed = Half(tokens, width);
  const TensorShape o = Half(tokens, int64_t{op.heads} * op.head_size);
  const TensorShape statistics =
      op.fused ? Other(op.sequences * op.heads, op.sequence_length)
               : Half(op.sequences * op.heads * op.sequence_length,
                      op.sequence_length);
  if (op.kind == OpKind::kAttentionForward) return {{packed}, {o, statistics}};
  return {{o, o, packed, statistics}, {packed, statistics}};
}

OpTensors GemmTensors(const StageOp& op) {
  const int64_t m = op.rows, n = op.columns, k = op.inner;
  const TensorShape d = Half(m, n);
  return {{op.transpose_a ? Half(k, m) : Half(m, k),
           op.transpose_b ? Half(n, k) : Half(k, n),
           op.epilogue == Epilogue::kGeluGradient ? d : Half(1, n)},
          {op.accumulate ? Other(m, n) : d, d}};
}

OpTensors TensorsOf(const StageOp& op) {
  const int64_t r = op.rows, c = op.columns;
  const TensorShape x = Half(r, c), vector = Half(1, c), sums = Other(1, c);
  const TensorShape mask = Other(r, c), pair = Half(r, 2 * c);
  switch (op.kind) {
    case OpKind::kGemm:
      return GemmTensors(op);
    case OpKind::kBiasGradient:
      return {{x}, {sums}};
    case OpKind::kNormForward:
      return {{x, x, vector, mask, vector, vector}, {x, x, Other(r, 2), mask}};
    case OpKind::kNormBackward:
      return {{x, x, Other(r, 2), vector, x}, {x, sums, sums}};
    case OpKind::kResidualForward:
      return {{x, x, vector}, {x, mask}};
    case OpKind::kDropoutBackward:
      return {{x, mask}, {x}};
    case OpKind::kGeluForward:
      return {{x, vector}, {x}};
    case OpKind::kGeluBackward:
      return {{x, x, vector}, {x}};
    case OpKind::kGatedForward:
      return {{pair}, {x}};
    case OpKind::kGatedBackward:
      return {{x, pair}, {pair}};
    case OpKind::kRotaryForward:
    case OpKind::kRotaryBackward: {
      StageOp attention = op;
      attention.kind = OpKind::kAttentionForward;
      const TensorShape packed = AttentionTensors(attention).inputs[0];
      return {{packed}, {packed}};
    }
    case OpKind::kAttentionForward:
    case OpKind::kAttentionBackward:
      return AttentionTensors(op);
    case OpKind::kEmbeddingForward:
      return {{Other(1, r), Half(op.inner, c), Half(op.sequence_length, c)},
              {x}};
    case OpKind::kEmbeddingBackward:
      return {{x, Other(1, r)},
              {Other(op.inner, c), Other(op.sequence_length, c)}};
    case OpKind::kCrossEntropy:
      return {{x, Other(1, r)}, {x, Other(1, r)}};
    case OpKind::kAdam: {
      const TensorShape s = Other(r, c);
      return {{s, s, s, s, x}, {s, s, s, s, x}};
    }
    case OpKind::kClear:
      return {{Other(r, c)}, {Other(r, c)}};
  }
  return {};
}

}  // namespace

TensorShape InputShape(const StageOp& op, int index) {
  return TensorsOf(op).inputs[index];
}

TensorShape OutputShape(const StageOp& op, int index) {
  return TensorsOf(op).outputs[index];
}

int NumInputs(OpKind kind) {
  StageOp op;
  op.kind = kind;
  return static_cast<int>(TensorsOf(op).inputs.size());
}

int NumOutputs(OpKind kind) {
  StageOp op;
  op.kind = kind;
  return static_cast<int>(TensorsOf(op).outputs.size());
}

}  // namespace weir::calibrate
