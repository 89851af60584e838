// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "calibrate/gpu/kernels/kernels.h"
#include "calibrate/gpu/kernels/launchers.h"

namespace weir::calibrate {
namespace {

bool HasStride(const std::vector<TensorView>& views) {
  return std::any_of(views.begin(), views.end(), [](const TensorView& view) {
    return view.present() && view.stride > 0;
  });
}

}  // namespace

bool HasKernel(const StageOp& op) {
  const bool attention = op.kind == OpKind::kAttentionForward ||
                         op.kind == OpKind::kAttentionBackward;
  return op.kind != OpKind::kGemm && (!attention || op.fused);
}

cudaError_t LaunchOp(const Launch& launch, const StageOp& op,
                     const void* const* inputs, void* const* outputs) {
  if (!HasKernel(op) || HasStride(op.inputs) || HasStride(op.outputs)) {
    return cudaErrorNotSupported;
  }
  const Tensors tensors = {inputs, outputs};
  switch (op.kind) {
    case OpKind::kBiasGradient:
    case OpKind::kNormForward:
    case OpKind::kNormBackward:
    case OpKind::kCrossEntropy:
      return LaunchReduction(launch, op, tensors);
    case OpKind::kAdam:
      return LaunchAdam(launch, op, tensors);
    case OpKind::kClear:
      return LaunchClear(launch, op, tensors);
    case OpKind::kAttentionForward:
      return LaunchAttentionForward(launch, op, tensors);
    case OpKind::kAttentionBackward:
      return LaunchAttentionBackward(launch, op, tensors);
    default:
      return LaunchElementwise(launch, op, tensors);
  }
}

}  // namespace weir::calibrate
