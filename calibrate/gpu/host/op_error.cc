// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/op_error.h"

#include <algorithm>
#include <limits>

#include "base/in_parts.h"
#include "calibrate/execute/reference/reference_ops.h"
#include "calibrate/execute/stage/dropout_mask.h"
#include "calibrate/gpu/host/attention_sample.h"
#include "calibrate/gpu/host/difference.h"

namespace weir::calibrate {
namespace {

using Tensors = std::vector<std::vector<double>>;

std::vector<double> Gather(const HostTensor& tensor,
                           const TensorSample& sample) {
  const auto num_columns = static_cast<int64_t>(sample.columns.size());
  std::vector<double> values(sample.rows.size() * sample.columns.size());
  InParts(std::ssize(values), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last;) {
      const int64_t row = i / num_columns;
      const int64_t end = std::min(last, (row + 1) * num_columns);
      for (; i < end; ++i) {
        values[i] =
            tensor.At(sample.rows[row], sample.columns[i - row * num_columns]);
      }
    }
  });
  return values;
}

// Returns the mask from the seed and the position of each element in all of op.
std::vector<double> GatherMask(const StageOp& op, const TensorSample& sample) {
  std::vector<double> values;
  for (int64_t row : sample.rows) {
    for (int64_t column : sample.columns) {
      values.push_back(IsKept(op.seed, op.dropout, row * op.columns + column));
    }
  }
  return values;
}

Tensors GatherInputs(const StageOp& op, const OpCopies& copies,
                     const OpSample& sample) {
  Tensors inputs(copies.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (copies.inputs[i].present()) {
      inputs[i] = Gather(copies.inputs[i], sample.inputs[i]);
    }
  }
  if (op.kind == OpKind::kNormForward && op.dropout > 0 &&
      !copies.inputs[3].present()) {
    inputs[3] = GatherMask(op, sample.inputs[3]);
  }
  return inputs;
}

Tensors GatherOutputs(const StageOp& op, const OpCopies& copies,
                      const OpSample& sample) {
  Tensors outputs(copies.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorSample& part = sample.outputs[i];
    const int input = SameInput(op, static_cast<int>(i));
    if (copies.outputs_before[i].present()) {
      outputs[i] = Gather(copies.outputs_before[i], part);
    } else if (input >= 0) {
      outputs[i] = Gather(copies.inputs[input], part);
    } else if (copies.outputs[i].present()) {
      outputs[i].assign(part.rows.size() * part.columns.size(),
                        std::numeric_limits<double>::quiet_NaN());
    }
  }
  return outputs;
}

// Checks the gradients of a norm's gain and shift in some columns, over all
// rows.
double NormGradientError(const StageOp& op, const OpCopies& copies) {
  const std::vector<HostTensor>& in = copies.inputs;
  Difference gain, shift;
  for (int64_t column : PickSome(op.columns, 16)) {
    double gain_sum = copies.outputs_before[1].At(0, column), shift_sum = 0;
    for (int64_t row = 0; row < op.rows; ++row) {
      const double dy = in[0].At(row, column);
      const double normed =
          (in[1].At(row, column) - in[2].At(row, 0)) * in[2].At(row, 1);
      gain_sum += dy * normed;
      shift_sum += dy;
    }
    gain.Add(copies.outputs[1].At(0, column), gain_sum);
    if (copies.outputs[2].present()) {
      shift_sum += copies.outputs_before[2].At(0, column);
      shift.Add(copies.outputs[2].At(0, column), shift_sum);
    }
  }
  return std::max(gain.relative(), shift.relative());
}

double SampleError(const StageOp& op, const OpCopies& copies,
                   const OpSample& sample) {
  Tensors inputs = GatherInputs(op, copies, sample);
  Tensors outputs = GatherOutputs(op, copies, sample);
  std::vector<const double*> in;
  std::vector<double*> out;
  for (auto& tensor : inputs)
    in.push_back(tensor.empty() ? nullptr : tensor.data());
  for (auto& tensor : outputs)
    out.push_back(tensor.empty() ? nullptr : tensor.data());
  StageOp dense = sample.op;
  for (TensorView& view : dense.inputs) view.stride = 0;
  for (TensorView& view : dense.outputs) view.stride = 0;
  RunReference(dense, in, out);
  double worst = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty() || !sample.outputs[i].compared) continue;
    const std::vector<double> got =
        Gather(copies.outputs[i], sample.outputs[i]);
    Difference difference;
    for (size_t j = 0; j < got.size(); ++j) {
      difference.Add(got[j], outputs[i][j]);
    }
    worst = std::max(worst, difference.relative());
  }
  return worst;
}

bool IsAttention(const StageOp& op) {
  return op.kind == OpKind::kAttentionForward ||
         op.kind == OpKind::kAttentionBackward;
}

}  // namespace

bool ReadsOutput(const StageOp& op, int index) {
  switch (op.kind) {
    case OpKind::kGemm:
      if (op.accumulate && index == 0) return true;
      break;
    case OpKind::kBiasGradient:
    case OpKind::kEmbeddingBackward:
      return true;
    case OpKind::kNormBackward:
      if (index > 0) return true;
      break;
    default:
      break;
  }
  return SameInput(op, index) >= 0;
}

int SameInput(const StageOp& op, int index) {
  const TensorView& output = op.outputs[index];
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const TensorView& input = op.inputs[i];
    if (input.present() && input.buffer == output.buffer &&
        input.offset == output.offset) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

double RelativeError(const StageOp& op, const OpCopies& copies, double limit) {
  const OpSample sample = SampleOp(op, limit);
  if (IsAttention(op) && HostCost(sample.op) > 32 * limit) {
    return AttentionSampleError(op, copies, 64);
  }
  const double error = SampleError(op, copies, sample);
  if (op.kind == OpKind::kNormBackward && !sample.outputs[1].compared) {
    return std::max(error, NormGradientError(op, copies));
  }
  return error;
}

}  // namespace weir::calibrate
