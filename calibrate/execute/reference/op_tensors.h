// SPDX-License-Identifier: Apache-2.0
// The tensors of an operation as rows of doubles, and the functions that
// implement RunReference().
#ifndef WEIR_CALIBRATE_EXECUTE_REFERENCE_OP_TENSORS_H_
#define WEIR_CALIBRATE_EXECUTE_REFERENCE_OP_TENSORS_H_

#include "absl/types/span.h"
#include "calibrate/execute/stage/op_shapes.h"
#include "calibrate/execute/stage/stage_op.h"

namespace weir::calibrate {

template <typename T>
struct Rows {
  T* data = nullptr;  // null: absent in this operation
  int64_t stride = 0;

  explicit operator bool() const { return data != nullptr; }
  T* operator[](int64_t row) const { return data + row * stride; }
};

class OpTensors {
 public:
  OpTensors(const StageOp& op, absl::Span<const double* const> inputs,
            absl::Span<double* const> outputs)
      : op_(op), inputs_(inputs), outputs_(outputs) {}

  Rows<const double> In(size_t i) const {
    if (i >= inputs_.size()) return {};
    return {inputs_[i], Stride(op_.inputs, i, InputShape(op_, i))};
  }
  Rows<double> Out(size_t i) const {
    if (i >= outputs_.size()) return {};
    return {outputs_[i], Stride(op_.outputs, i, OutputShape(op_, i))};
  }

 private:
  static int64_t Stride(const std::vector<TensorView>& views, size_t i,
                        const TensorShape& shape) {
    return i < views.size() ? StrideOf(views[i], shape) : shape.columns;
  }

  const StageOp& op_;
  absl::Span<const double* const> inputs_;
  absl::Span<double* const> outputs_;
};

double Gelu(double x);  // tanh form (Hendrycks and Gimpel 2016)
double GeluDerivative(double x);

void ReferenceGemm(const StageOp& op, const OpTensors& tensors);
void ReferenceBiasGradient(const StageOp& op, const OpTensors& tensors);

void ReferenceNormForward(const StageOp& op, const OpTensors& tensors);
void ReferenceNormBackward(const StageOp& op, const OpTensors& tensors);
void ReferenceResidualForward(const StageOp& op, const OpTensors& tensors);
void ReferenceDropoutBackward(const StageOp& op, const OpTensors& tensors);

void ReferenceGeluForward(const StageOp& op, const OpTensors& tensors);
void ReferenceGeluBackward(const StageOp& op, const OpTensors& tensors);
void ReferenceGatedForward(const StageOp& op, const OpTensors& tensors);
void ReferenceGatedBackward(const StageOp& op, const OpTensors& tensors);

void ReferenceRotary(const StageOp& op, const OpTensors& tensors);
void ReferenceAttentionForward(const StageOp& op, const OpTensors& tensors);
void ReferenceAttentionBackward(const StageOp& op, const OpTensors& tensors);

void ReferenceEmbeddingForward(const StageOp& op, const OpTensors& tensors);
void ReferenceEmbeddingBackward(const StageOp& op, const OpTensors& tensors);
void ReferenceCrossEntropy(const StageOp& op, const OpTensors& tensors);
void ReferenceAdam(const StageOp& op, const OpTensors& tensors);
void ReferenceClear(const StageOp& op, const OpTensors& tensors);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_REFERENCE_OP_TENSORS_H_
