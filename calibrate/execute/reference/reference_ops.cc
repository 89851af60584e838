// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/reference/reference_ops.h"

#include "calibrate/execute/reference/op_tensors.h"

namespace weir::calibrate {

void RunReference(const StageOp& op, absl::Span<const double* const> inputs,
                  absl::Span<double* const> outputs) {
  const OpTensors tensors(op, inputs, outputs);
  switch (op.kind) {
    case OpKind::kGemm:
      return ReferenceGemm(op, tensors);
    case OpKind::kBiasGradient:
      return ReferenceBiasGradient(op, tensors);
    case OpKind::kNormForward:
      return ReferenceNormForward(op, tensors);
    case OpKind::kNormBackward:
      return ReferenceNormBackward(op, tensors);
    case OpKind::kResidualForward:
      return ReferenceResidualForward(op, tensors);
    case OpKind::kDropoutBackward:
      return ReferenceDropoutBackward(op, tensors);
    case OpKind::kGeluForward:
      return ReferenceGeluForward(op, tensors);
    case OpKind::kGeluBackward:
      return ReferenceGeluBackward(op, tensors);
    case OpKind::kGatedForward:
      return ReferenceGatedForward(op, tensors);
    case OpKind::kGatedBackward:
      return ReferenceGatedBackward(op, tensors);
    case OpKind::kRotaryForward:
    case OpKind::kRotaryBackward:
      return ReferenceRotary(op, tensors);
    case OpKind::kAttentionForward:
      return ReferenceAttentionForward(op, tensors);
    case OpKind::kAttentionBackward:
      return ReferenceAttentionBackward(op, tensors);
    case OpKind::kEmbeddingForward:
      return ReferenceEmbeddingForward(op, tensors);
    case OpKind::kEmbeddingBackward:
      return ReferenceEmbeddingBackward(op, tensors);
    case OpKind::kCrossEntropy:
      return ReferenceCrossEntropy(op, tensors);
    case OpKind::kAdam:
      return ReferenceAdam(op, tensors);
    case OpKind::kClear:
      return ReferenceClear(op, tensors);
  }
}

}  // namespace weir::calibrate
