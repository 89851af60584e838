// SPDX-License-Identifier: Apache-2.0
// Makes single kernels.
#ifndef WEIR_MODELS_KERNELS_H_
#define WEIR_MODELS_KERNELS_H_

#include "models/layer_work.h"

namespace weir {

Kernel MemoryKernel(double bytes, KernelPart part = KernelPart::kElementwise,
                    int launches = 1);

// `batch` products of (m x k) by (k x n).
Kernel ProductKernel(double batch, double m, double n, double k,
                     double element_bytes,
                     KernelPart part = KernelPart::kProjectionProduct);

// The products of a linear layer that maps `rows` vectors of width `in` to
// width `out`; `batch` layers of that size at once, each with its own rows.
struct Linear {
  KernelPart part = KernelPart::kProjectionProduct;
  double batch = 1;
  double rows = 0;
  double in = 0;
  double out = 0;
  bool bias = false;
  // FLOP that the model needs, over FLOP performed: below 1 where every GPU of
  // the group repeats the same product, or rows and columns are padding.
  double needed = 1;
};

// Adds one forward and the two backward products, the sum that makes the
// gradient of the bias, and the gradient's way into its buffer.
void AddLinear(const WorkSpec& spec, const Linear& linear, LayerWork* work);

// A pass over memory each way; none where the bytes are 0.
void AddPasses(KernelPart part, double forward_bytes, int forward_launches,
               double backward_bytes, int backward_launches, LayerWork* work);

}  // namespace weir

#endif  // WEIR_MODELS_KERNELS_H_
