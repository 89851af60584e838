// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/op_sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "calibrate/execute/stage/op_shapes.h"

namespace weir::calibrate {
namespace {

std::vector<int64_t> Range(int64_t first, int64_t count) {
  std::vector<int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

void Append(const std::vector<int64_t>& more, std::vector<int64_t>* list) {
  list->insert(list->end(), more.begin(), more.end());
}

TensorSample Whole(const TensorShape& shape) {
  return {Range(0, shape.rows), Range(0, shape.columns)};
}

OpSample WholeOp(const StageOp& op) {
  OpSample sample{op, {}, {}};
  for (int i = 0; i < NumInputs(op.kind); ++i) {
    sample.inputs.push_back(Whole(InputShape(op, i)));
  }
  for (int i = 0; i < NumOutputs(op.kind); ++i) {
    sample.outputs.push_back(Whole(OutputShape(op, i)));
  }
  return sample;
}

OpSample SampleGemm(const StageOp& op, double limit) {
  OpSample sample = WholeOp(op);
  const auto side =
      std::max<int64_t>(16, std::sqrt(limit / std::max<int64_t>(op.inner, 1)));
  const auto rows = PickSome(op.rows, std::min(op.rows, side));
  const auto columns = PickSome(op.columns, std::min(op.columns, side));
  (op.transpose_a ? sample.inputs[0].columns : sample.inputs[0].rows) = rows;
  (op.transpose_b ? sample.inputs[1].rows : sample.inputs[1].columns) = columns;
  sample.inputs[2].columns = columns;
  if (op.epilogue == Epilogue::kGeluGradient) sample.inputs[2].rows = rows;
  for (TensorSample& output : sample.outputs) {
    output.rows = rows;
    output.columns = columns;
  }
  sample.op.rows = static_cast<int64_t>(rows.size());
  sample.op.columns = static_cast<int64_t>(columns.size());
  return sample;
}

// Samples sums over rows: all rows of some columns.
OpSample SampleColumns(const StageOp& op, double limit) {
  OpSample sample = WholeOp(op);
  const int64_t column_cost = 8 * (op.rows + op.inner);
  const auto columns = PickSome(
      op.columns, std::clamp<int64_t>(limit / std::max<int64_t>(column_cost, 1),
                                      8, op.columns));
  const auto is_tokens = [&](int input) {
    return (op.kind == OpKind::kEmbeddingForward && input == 0) ||
           (op.kind == OpKind::kEmbeddingBackward && input == 1);
  };
  for (int i = 0; i < static_cast<int>(sample.inputs.size()); ++i) {
    if (!is_tokens(i)) sample.inputs[i].columns = columns;
  }
  for (TensorSample& output : sample.outputs) output.columns = columns;
  sample.op.columns = static_cast<int64_t>(columns.size());
  return sample;
}

OpSample SampleRows(const StageOp& op, double limit) {
  OpSample sample = WholeOp(op);
  const int64_t count = std::clamp<int64_t>(
      limit / 8 / std::max<int64_t>(op.columns, 1), 4, op.rows);
  // The mask of a residual depends on the row number.
  const bool by_index = op.kind == OpKind::kResidualForward && op.dropout > 0;
  const auto rows = by_index ? Range(0, count) : PickSome(op.rows, count);
  const auto reduce = [&](const TensorShape& shape, TensorSample* tensor) {
    if (shape.rows == op.rows) tensor->rows = rows;
  };
  for (int i = 0; i < static_cast<int>(sample.inputs.size()); ++i) {
    reduce(InputShape(op, i), &sample.inputs[i]);
  }
  for (int i = 0; i < static_cast<int>(sample.outputs.size()); ++i) {
    reduce(OutputShape(op, i), &sample.outputs[i]);
  }
  if (op.kind == OpKind::kCrossEntropy) {  // targets and losses are row vectors
    sample.inputs[1].columns = rows;
    sample.outputs[1].columns = rows;
  }
  if (op.kind == OpKind::kNormBackward) {
    sample.outputs[1].compared = false;
    sample.outputs[2].compared = false;
  }
  sample.op.rows = count;
  return sample;
}

// Samples the optimizer and clears, as one row.
OpSample SampleFlat(const StageOp& op, double limit) {
  OpSample sample = WholeOp(op);
  const auto columns =
      PickSome(op.columns, std::clamp<int64_t>(limit / 8, 4, op.columns));
  for (TensorSample& input : sample.inputs) input.columns = columns;
  for (TensorSample& output : sample.outputs) output.columns = columns;
  sample.op.columns = static_cast<int64_t>(columns.size());
  return sample;
}

// One sequence and one group of heads with its keys; for rotation one head of
// it.
class HeadSample {
 public:
  HeadSample(const StageOp& op, bool one_head) : op_(op) {
    group_size_ = op.heads / op.kv_heads;
    sequence_ = op.sequences - 1;
    kv_head_ = op.kv_heads - 1;
    first_head_ = kv_head_ * group_size_;
    num_heads_ = one_head ? 1 : group_size_;
    rows_ = Range(sequence_ * op.sequence_length, op.sequence_length);
  }

  StageOp Smaller() const {
    StageOp op = op_;
    op.sequences = 1;
    op.heads = static_cast<int>(num_heads_);
    op.kv_heads = 1;
    return op;
  }
  TensorSample Packed() const {
    TensorSample sample{rows_, Columns(first_head_, num_heads_)};
    Append(Columns(op_.heads + kv_head_, 1), &sample.columns);
    Append(Columns(op_.heads + op_.kv_heads + kv_head_, 1), &sample.columns);
    return sample;
  }
  TensorSample Output() const {
    return {rows_, Columns(first_head_, num_heads_)};
  }
  // Rows are heads, or (head, query) pairs.
  TensorSample Statistics() const {
    const int64_t s = op_.sequence_length;
    const int64_t rows_per_head = op_.fused ? 1 : s;
    return {Range((sequence_ * op_.heads + first_head_) * rows_per_head,
                  num_heads_ * rows_per_head),
            Range(0, s)};
  }

 private:
  std::vector<int64_t> Columns(int64_t head, int64_t num_heads) const {
    return Range(head * op_.head_size, num_heads * op_.head_size);
  }

  const StageOp& op_;
  int64_t group_size_, sequence_, kv_head_, first_head_, num_heads_;
  std::vector<int64_t> rows_;
};

OpSample SampleHeads(const StageOp& op) {
  switch (op.kind) {
    case OpKind::kAttentionForward: {
      const HeadSample heads(op, false);
      return {heads.Smaller(),
              {heads.Packed()},
              {heads.Output(), heads.Statistics()}};
    }
    case OpKind::kAttentionBackward: {
      const HeadSample heads(op, false);
      return {
          heads.Smaller(),
          {heads.Output(), heads.Output(), heads.Packed(), heads.Statistics()},
          {heads.Packed(), heads.Statistics()}};
    }
    default: {
      const HeadSample heads(op, true);
      return {heads.Smaller(), {heads.Packed()}, {heads.Packed()}};
    }
  }
}

}  // namespace

double HostCost(const StageOp& op) {
  const double pairs = 1.0 * op.sequences * op.heads * op.sequence_length *
                       op.sequence_length * op.head_size;
  switch (op.kind) {
    case OpKind::kGemm:
      return 1.0 * op.rows * op.columns * op.inner;
    case OpKind::kAttentionForward:
      return 2 * pairs;
    case OpKind::kAttentionBackward:
      return 5 * pairs;
    case OpKind::kRotaryForward:
    case OpKind::kRotaryBackward:
      return 8.0 * InputShape(op, 0).num_elements();
    case OpKind::kEmbeddingForward:
    case OpKind::kEmbeddingBackward:
      return 8.0 * (op.rows + op.inner) * op.columns;
    default:
      return 8.0 * op.rows * op.columns;
  }
}

namespace {

OpSample AnySample(const StageOp& op, double limit) {
  if (HostCost(op) <= limit) return WholeOp(op);
  switch (op.kind) {
    case OpKind::kGemm:
      return SampleGemm(op, limit);
    case OpKind::kAttentionForward:
    case OpKind::kAttentionBackward:
    case OpKind::kRotaryForward:
    case OpKind::kRotaryBackward:
      return SampleHeads(op);
    case OpKind::kBiasGradient:
    case OpKind::kEmbeddingForward:
    case OpKind::kEmbeddingBackward:
      return SampleColumns(op, limit);
    case OpKind::kAdam:
    case OpKind::kClear:
      return op.rows == 1 ? SampleFlat(op, limit) : SampleRows(op, limit);
    default:
      return SampleRows(op, limit);
  }
}

}  // namespace

OpSample SampleOp(const StageOp& op, double limit) {
  OpSample sample = AnySample(op, limit);
  // The scratch is specific to each implementation.
  if (op.kind == OpKind::kAttentionBackward) sample.outputs[1].compared = false;
  return sample;
}

std::vector<StageOp> CopiedParts(const StageOp& op, int64_t max_elements) {
  constexpr int64_t kNumParts = 3;
  if (op.kind != OpKind::kAdam || op.columns <= max_elements) return {op};
  const int64_t size = max_elements / kNumParts;
  std::vector<StageOp> parts;
  for (int64_t i = 0; i < kNumParts; ++i) {
    const int64_t first = i * (op.columns - size) / (kNumParts - 1);
    StageOp part = op;
    part.columns = size;
    for (TensorView& view : part.inputs) view.offset += first;
    for (TensorView& view : part.outputs) view.offset += first;
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<int64_t> PickSome(int64_t n, int64_t count) {
  if (count >= n) return Range(0, n);
  std::vector<int64_t> picked;
  uint64_t random = 0x9E3779B97F4A7C15;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * n / count, end = (i + 1) * n / count;
    random = random * 6364136223846793005 + 1442695040888963407;
    picked.push_back(begin +
                     static_cast<int64_t>((random >> 33) % (end - begin)));
  }
  if (!picked.empty()) picked.back() = n - 1;
  return picked;
}

}  // namespace weir::calibrate
