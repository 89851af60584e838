// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/attention_gemms.h"

#include "calibrate/execute/stage/op_shapes.h"

namespace weir::calibrate {
namespace {

// A matrix of one sequence and member of a group, batched over the groups.
struct Slice {
  AttentionOperand operand;
  int64_t rows = 0, columns = 0, stride = 0, batch_stride = 0;
};

AttentionGemm Multiply(const Slice& a, bool transpose_a, const Slice& b,
                       bool transpose_b, const Slice& d, int64_t num_batches,
                       bool accumulate) {
  return {.a = a.operand,
          .b = b.operand,
          .d = d.operand,
          .shape = {.m = d.rows,
                    .n = d.columns,
                    .k = transpose_a ? a.rows : a.columns,
                    .transpose_a = transpose_a,
                    .transpose_b = transpose_b,
                    .accumulate = accumulate,
                    .stride_a = a.stride,
                    .stride_b = b.stride,
                    .stride_d = d.stride,
                    .num_batches = num_batches,
                    .batch_stride_a = a.batch_stride,
                    .batch_stride_b = b.batch_stride,
                    .batch_stride_d = d.batch_stride}};
}

// Finds the slices of one sequence and one member of each group.
class Slicer {
 public:
  Slicer(const StageOp& op, int64_t sequence, int64_t member)
      : op_(op), sequence_(sequence), member_(member) {}

  int64_t group_size() const { return op_.heads / op_.kv_heads; }

  // `what`: 0 queries, 1 keys, 2 values.
  Slice Packed(bool is_output, int index, int what) const {
    const int64_t heads_before = what == 0   ? member_
                                 : what == 1 ? op_.heads
                                             : op_.heads + op_.kv_heads;
    const int64_t heads_apart = what == 0 ? group_size() : 1;
    return OfHead(is_output, index, heads_before, heads_apart);
  }
  // o, or its gradient.
  Slice Output(bool is_output, int index) const {
    return OfHead(is_output, index, member_, group_size());
  }
  Slice Scores(bool is_output, int index) const {
    const int64_t s = op_.sequence_length;
    const int64_t first = sequence_ * op_.heads + member_;
    return {{is_output, index, first * s * s}, s, s, s, group_size() * s * s};
  }

 private:
  Slice OfHead(bool is_output, int index, int64_t heads_before,
               int64_t heads_apart) const {
    const int64_t stride =
        is_output ? StrideOf(op_.outputs[index], OutputShape(op_, index))
                  : StrideOf(op_.inputs[index], InputShape(op_, index));
    const int64_t s = op_.sequence_length;
    return {{is_output, index,
             sequence_ * s * stride + heads_before * op_.head_size},
            s,
            op_.head_size,
            stride,
            heads_apart * op_.head_size};
  }

  const StageOp& op_;
  const int64_t sequence_, member_;
};

void AddForward(const StageOp& op, const Slicer& slice, AttentionGemms* gemms) {
  // packed -> o, probabilities
  const Slice scores = slice.Scores(true, 1);
  gemms->before.push_back(Multiply(slice.Packed(false, 0, 0), false,
                                   slice.Packed(false, 0, 1), true, scores,
                                   op.kv_heads, false));
  gemms->after.push_back(Multiply(scores, false, slice.Packed(false, 0, 2),
                                  false, slice.Output(true, 0), op.kv_heads,
                                  false));
}

void AddBackward(const StageOp& op, const Slicer& slice, bool is_first,
                 AttentionGemms* gemms) {
  // do, o, packed, probabilities -> d packed, gradient of the scores
  const Slice d_output = slice.Output(false, 0);
  const Slice d_scores = slice.Scores(true, 1);
  const int64_t n = op.kv_heads;
  gemms->before.push_back(Multiply(d_output, false, slice.Packed(false, 2, 2),
                                   true, d_scores, n, false));
  gemms->after.push_back(Multiply(d_scores, false, slice.Packed(false, 2, 1),
                                  false, slice.Packed(true, 0, 0), n, false));
  gemms->after.push_back(Multiply(d_scores, true, slice.Packed(false, 2, 0),
                                  false, slice.Packed(true, 0, 1), n,
                                  !is_first));
  gemms->after.push_back(Multiply(slice.Scores(false, 3), true, d_output, false,
                                  slice.Packed(true, 0, 2), n, !is_first));
}

}  // namespace

AttentionGemms GemmsOfAttention(const StageOp& op) {
  AttentionGemms gemms;
  for (int64_t sequence = 0; sequence < op.sequences; ++sequence) {
    for (int64_t member = 0; member < op.heads / op.kv_heads; ++member) {
      const Slicer slice(op, sequence, member);
      if (op.kind == OpKind::kAttentionForward) {
        AddForward(op, slice, &gemms);
      } else {
        AddBackward(op, slice, member == 0, &gemms);
      }
    }
  }
  return gemms;
}

}  // namespace weir::calibrate
