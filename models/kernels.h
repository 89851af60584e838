// SPDX-License-Identifier: Apache-2.0
// Makes single kernels.
#ifndef WEIR_MODELS_KERNELS_H_
#define WEIR_MODELS_KERNELS_H_

#include "models/layer_work.h"

namespace weir {

Kernel MemoryKernel(double bytes, KernelPart part = KernelPart::kElementwise);

// `batch` products of (m x k) by (k x n).
Kernel ProductKernel(double batch, double m, double n, double k,
                     double element_bytes,
                     KernelPart part = KernelPart::kProjectionProduct);

// The products of a linear layer that maps `rows` vectors of width `in` to
// width `out`.
struct Linear {
  KernelPart part = KernelPart::kProjectionProduct;
  double rows = 0;
  double in = 0;
  double out = 0;
  bool bias = false;
  double element_bytes = 2;
  // FLOP that the model needs, over FLOP performed: below 1 where every GPU of
  // the group repeats the same product.
  double needed = 1;
};

// Adds one forward and the two backward products, and the sum that makes the
// gradient of the bias.
void AddLinear(const Linear& linear, LayerWork* work);

}  // namespace weir

#endif  // WEIR_MODELS_KERNELS_H_
