// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/fill_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "calibrate/execute/stage/op_shapes.h"
#include "calibrate/gpu/host/host_tensor.h"

namespace weir::calibrate {
namespace {

constexpr float kWeightDeviation = 0.02F;
// Magnitude of sums over thousands of tokens of products of numbers around 1.
constexpr float kGradientDeviation = 30;
// All bytes 0x3C: 0.0115 as fp32.
constexpr int kSmallFloatByte = 0x3C;

Fill FillOfClass(const StageBuffer& buffer) {
  Fill fill;
  switch (buffer.format) {
    case ElementFormat::kUint8:  // masks keep everything
      fill.kind = Fill::Kind::kBytes;
      fill.byte = 1;
      return fill;
    case ElementFormat::kInt32:
      fill.kind = Fill::Kind::kTokens;
      return fill;
    default:
      break;
  }
  if (buffer.buffer_class == BufferClass::kWeights ||
      buffer.buffer_class == BufferClass::kOptimizerState) {
    fill.deviation = kWeightDeviation;
  } else if (buffer.buffer_class == BufferClass::kGradients) {
    fill.deviation = kGradientDeviation;
  }
  return fill;
}

Piece PieceOf(const TensorView& view, const TensorShape& shape) {
  return {view.buffer, view.offset, SpanOf(view, shape)};
}

// Adds the fills that an operation requires in its inputs.
void AddFills(const StageOp& op, std::vector<PieceFill>* fills) {
  const auto add = [&](int input, const Fill& fill) {
    fills->push_back({PieceOf(op.inputs[input], InputShape(op, input)), fill});
  };
  const auto tokens = [](int64_t limit) {
    return Fill{Fill::Kind::kTokens, 1, static_cast<int32_t>(limit), 0};
  };
  switch (op.kind) {
    case OpKind::kEmbeddingForward:
      return add(0, tokens(op.inner));
    case OpKind::kEmbeddingBackward:
      return add(1, tokens(op.inner));
    case OpKind::kCrossEntropy:
      return add(1, tokens(op.columns));
    case OpKind::kNormForward:
      return add(4, Fill{});
    case OpKind::kAdam:
      return add(3, {Fill::Kind::kBytes, 1, 1, kSmallFloatByte});
    default:
      return;
  }
}

bool MustFit(const StageProgram& program, const StageOp& op, int input) {
  if (!op.inputs[input].present()) return false;
  // The output of the forward and its statistics, or the probabilities.
  if (op.kind == OpKind::kAttentionBackward) return input == 1 || input == 3;
  const StageBuffer& buffer = program.buffers[op.inputs[input].buffer];
  return buffer.format == ElementFormat::kUint8 ||
         (op.kind == OpKind::kNormBackward && input == 2);
}

bool Writes(const StageOp& op, int buffer) {
  return std::any_of(
      op.outputs.begin(), op.outputs.end(),
      [&](const TensorView& view) { return view.buffer == buffer; });
}

}  // namespace

std::vector<PieceFill> FillsOf(const StageProgram& program) {
  std::vector<PieceFill> fills;
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    const StageBuffer& buffer = program.buffers[i];
    fills.push_back({{i, 0, buffer.num_elements}, FillOfClass(buffer)});
  }
  for (const auto& ops : program.passes) {
    for (const StageOp& op : ops) AddFills(op, &fills);
  }
  return fills;
}

std::vector<OpIndex> OpsOf(const StageProgram& program, ProgramPass pass) {
  std::vector<OpIndex> ops;
  for (int op = 0; op < static_cast<int>(program.ops(pass).size()); ++op) {
    ops.push_back({pass, op});
  }
  return ops;
}

std::vector<OpIndex> ProducersOf(const StageProgram& program, OpIndex index) {
  const StageOp& op = program.ops(index.pass)[index.op];
  std::vector<OpIndex> before;
  for (int pass = 0; pass <= static_cast<int>(index.pass); ++pass) {
    for (const OpIndex& other :
         OpsOf(program, static_cast<ProgramPass>(pass))) {
      if (other == index) break;
      before.push_back(other);
    }
  }
  std::vector<OpIndex> producers;
  for (int input = 0; input < static_cast<int>(op.inputs.size()); ++input) {
    if (!MustFit(program, op, input)) continue;
    const auto last =
        std::find_if(before.rbegin(), before.rend(), [&](const OpIndex& other) {
          return Writes(program.ops(other.pass)[other.op],
                        op.inputs[input].buffer);
        });
    if (last == before.rend()) continue;
    if (std::find(producers.begin(), producers.end(), *last) ==
        producers.end()) {
      producers.push_back(*last);
    }
  }
  std::sort(producers.begin(), producers.end(),
            [](const OpIndex& a, const OpIndex& b) {
              return std::tie(a.pass, a.op) < std::tie(b.pass, b.op);
            });
  return producers;
}

std::vector<Piece> PiecesOf(const StageProgram& program,
                            const std::vector<OpIndex>& ops) {
  constexpr int64_t kStep = 256;
  std::map<int, std::pair<int64_t, int64_t>> ranges;  // by buffer: begin, end
  const auto add = [&](const TensorView& view, const TensorShape& shape) {
    if (!view.present()) return;
    const Piece piece = PieceOf(view, shape);
    const int64_t begin = piece.first / kStep * kStep;
    const int64_t end = piece.first + piece.num_elements;
    auto& range = ranges.try_emplace(view.buffer, begin, end).first->second;
    range = {std::min(range.first, begin), std::max(range.second, end)};
  };
  for (const OpIndex& index : ops) {
    const StageOp& op = program.ops(index.pass)[index.op];
    for (int i = 0; i < static_cast<int>(op.inputs.size()); ++i) {
      add(op.inputs[i], InputShape(op, i));
    }
    for (int i = 0; i < static_cast<int>(op.outputs.size()); ++i) {
      add(op.outputs[i], OutputShape(op, i));
    }
  }
  std::vector<Piece> pieces;
  for (const auto& [buffer, range] : ranges) {
    pieces.push_back({buffer, range.first, range.second - range.first});
  }
  return pieces;
}

int64_t TouchedBytes(const StageProgram& program, OpIndex index) {
  const StageOp& op = program.ops(index.pass)[index.op];
  std::set<std::pair<int, int64_t>> seen;
  int64_t bytes = 0;
  const auto add = [&](const TensorView& view, const TensorShape& shape) {
    if (!view.present() || !seen.insert({view.buffer, view.offset}).second) {
      return;
    }
    bytes +=
        shape.num_elements() * BytesOf(program.buffers[view.buffer].format);
  };
  for (int i = 0; i < static_cast<int>(op.inputs.size()); ++i) {
    add(op.inputs[i], InputShape(op, i));
  }
  for (int i = 0; i < static_cast<int>(op.outputs.size()); ++i) {
    add(op.outputs[i], OutputShape(op, i));
  }
  return bytes;
}

}  // namespace weir::calibrate
