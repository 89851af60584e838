// SPDX-License-Identifier: Apache-2.0
// The kernels that models/ counts for an operation. As in models/, bytes
// include only tensors with one row per token or per weight, not vectors
// (gains, biases, row statistics, token numbers).
#include "calibrate/execute/stage/stage_builder.h"
#include "models/kernels.h"

namespace weir::calibrate {
namespace {

constexpr double kGradientBytes = 4;

models::Kernel Memory(double bytes, models::KernelPart part) {
  models::Kernel kernel;
  kernel.part = part;
  kernel.bytes = bytes;
  return kernel;
}

models::Kernel MakeGemm(double batch, double m, double n, double k,
                        double bytes, models::KernelPart part) {
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kGemm;
  kernel.part = part;
  kernel.batch = batch;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = 2 * batch * m * n * k;
  kernel.bytes = bytes;
  return kernel;
}

models::Kernel GemmOf(const StageOp& op, double e, models::KernelPart part,
                      double needed) {
  const double m = op.rows, n = op.columns, k = op.inner;
  const double d = op.accumulate ? 2 * kGradientBytes : e;
  const bool aux = op.epilogue == Epilogue::kBiasGelu ||
                   op.epilogue == Epilogue::kGeluGradient;
  models::Kernel kernel = MakeGemm(
      1, m, n, k, e * (m * k + k * n) + (d + (aux ? e : 0)) * m * n, part);
  kernel.row_alignment = models::RowAlignment(n, op.transpose_a ? m : k);
  if (needed != 1) {
    kernel.performed_flops = kernel.flops;
    kernel.flops *= needed;
  }
  return kernel;
}

// Dao et al. 2022: two GEMMs forward, and five backward, one of which
// recomputes the scores. Work hidden by a causal mask is skipped.
models::Kernel FusedAttention(const StageOp& op, double e) {
  const bool forward = op.kind == OpKind::kAttentionForward;
  const double s = op.sequence_length, d = op.head_size;
  const double rows = double(op.sequences) * op.heads;
  const double kv_rows = double(op.sequences) * op.kv_heads;
  const double gemm = 2 * rows * s * s * d;
  models::Kernel kernel;
  kernel.kind = models::Kernel::Kind::kAttention;
  kernel.part = models::KernelPart::kAttentionCore;
  kernel.batch = rows;
  kernel.m = kernel.n = s;
  kernel.k = d;
  kernel.num_gemms = forward ? 2 : 5;
  kernel.flops = (forward ? 2 : 4) * gemm;
  kernel.performed_flops = kernel.num_gemms * gemm * (op.causal ? 0.5 : 1);
  // Queries, keys, values, output; in the backward pass also their gradients.
  const double tensors = 2 * e * s * d * (rows + kv_rows);
  kernel.bytes = (forward ? 1 : 2) * tensors + 4 * rows * s;
  return kernel;
}

std::vector<models::Kernel> UnfusedAttention(const StageOp& op, double e) {
  const double s = op.sequence_length, d = op.head_size;
  const double rows = double(op.sequences) * op.heads;
  const double scores = rows * s * s;
  const double bytes = e * (2 * rows * s * d + scores);
  const models::KernelPart part = models::KernelPart::kAttentionGemm;
  models::Kernel to_scores = MakeGemm(rows, s, s, d, bytes, part);
  models::Kernel from_scores = MakeGemm(rows, s, d, s, bytes, part);
  to_scores.row_alignment = from_scores.row_alignment =
      models::RowAlignment(s, d);
  if (op.kind == OpKind::kAttentionForward) {
    return {to_scores, Memory(2 * e * scores, models::KernelPart::kSoftmax),
            from_scores};
  }
  return {to_scores, Memory(3 * e * scores, models::KernelPart::kSoftmax),
          from_scores, from_scores, from_scores};
}

// Returns the bytes per element that the operation reads and writes.
double BytesPerElement(const StageOp& op, double e) {
  const auto present = [](const std::vector<TensorView>& views, size_t i) {
    return i < views.size() && views[i].present();
  };
  switch (op.kind) {
    case OpKind::kBiasGradient:
      return e;
    case OpKind::kNormForward:  // x, y; addend and sum
      return 2 * e + (present(op.inputs, 1) ? 2 * e : 0) +
             (present(op.inputs, 3) ? 1 : 0) + (present(op.outputs, 3) ? 1 : 0);
    case OpKind::kNormBackward:
      return 3 * e + (present(op.inputs, 4) ? e : 0);
    case OpKind::kResidualForward:
      return 3 * e + (present(op.outputs, 1) ? 1 : 0);
    case OpKind::kDropoutBackward:
      return 2 * e + 1;
    case OpKind::kGeluForward:
    case OpKind::kCrossEntropy:  // the row is read again from the cache
      return 2 * e;
    case OpKind::kGeluBackward:
    case OpKind::kGatedForward:
      return 3 * e;
    case OpKind::kGatedBackward:
      return 5 * e;
    case OpKind::kEmbeddingForward:
      return 2 * e + (present(op.inputs, 2) ? e : 0);
    case OpKind::kEmbeddingBackward:
      return e + 2 * kGradientBytes;
    case OpKind::kAdam:  // gradient, master, moments; weight
      return 4 * 2 * 4 + e;
    default:
      return 0;
  }
}

}  // namespace

std::vector<models::Kernel> KernelsOf(const StageOp& op, ElementFormat format,
                                      models::KernelPart part, double needed) {
  const double e = BytesOf(format);
  const double elements = double(op.rows) * op.columns;
  switch (op.kind) {
    case OpKind::kGemm:
      return {GemmOf(op, e, part, needed)};
    case OpKind::kAttentionForward:
    case OpKind::kAttentionBackward:
      if (op.fused) return {FusedAttention(op, e)};
      return UnfusedAttention(op, e);
    case OpKind::kRotaryForward:
    case OpKind::kRotaryBackward:
      return {Memory(2 * e * op.sequences * op.sequence_length *
                         (op.heads + op.kv_heads) * op.head_size,
                     part)};
    case OpKind::kEmbeddingBackward: {
      const bool positions = op.outputs[1].present();
      return {Memory(BytesPerElement(op, e) * elements +
                         (positions ? 2 * kGradientBytes : 0) *
                             op.sequence_length * op.columns,
                     part)};
    }
    case OpKind::kClear:
      return {};
    default:
      return {Memory(BytesPerElement(op, e) * elements, part)};
  }
}

}  // namespace weir::calibrate
