// SPDX-License-Identifier: Apache-2.0
// The launchers used by LaunchOp, by source file.
#ifndef WEIR_CALIBRATE_GPU_KERNELS_LAUNCHERS_H_
#define WEIR_CALIBRATE_GPU_KERNELS_LAUNCHERS_H_

#include "calibrate/gpu/kernels/kernels.h"

namespace weir::calibrate {

// Tensors of an operation, by their index in OpKind's table.
struct Tensors {
  const void* const* inputs;
  void* const* outputs;

  template <typename T>
  const T* in(int index) const {
    return static_cast<const T*>(inputs[index]);
  }
  template <typename T>
  T* out(int index) const {
    return static_cast<T*>(outputs[index]);
  }
};

// elementwise.cu: residuals, dropout, activations, positions, embedding.
cudaError_t LaunchElementwise(const Launch& launch, const StageOp& op,
                              const Tensors& tensors);
// reductions.cu: norms, gradients of biases, cross-entropy.
cudaError_t LaunchReduction(const Launch& launch, const StageOp& op,
                            const Tensors& tensors);
// streaming.cu
cudaError_t LaunchAdam(const Launch& launch, const StageOp& op,
                       const Tensors& tensors);
cudaError_t LaunchClear(const Launch& launch, const StageOp& op,
                        const Tensors& tensors);
// attention_forward.cu, attention_backward.cu: fused attention.
cudaError_t LaunchAttentionForward(const Launch& launch, const StageOp& op,
                                   const Tensors& tensors);
cudaError_t LaunchAttentionBackward(const Launch& launch, const StageOp& op,
                                    const Tensors& tensors);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_KERNELS_LAUNCHERS_H_
