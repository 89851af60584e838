// SPDX-License-Identifier: Apache-2.0
#include "models/kernels.h"

namespace weir {

Kernel MemoryKernel(double bytes, KernelPart part) {
  Kernel kernel;
  kernel.part = part;
  kernel.bytes = bytes;
  return kernel;
}

Kernel ProductKernel(double batch, double m, double n, double k,
                     double element_bytes, KernelPart part) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::kProduct;
  kernel.part = part;
  kernel.batch = batch;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = 2 * batch * m * n * k;
  kernel.bytes = element_bytes * batch * (m * k + k * n + m * n);
  return kernel;
}

void AddLinear(const Linear& linear, LayerWork* work) {
  const auto [part, rows, in, out, bias, e, needed] = linear;
  Kernel forward = ProductKernel(1, rows, out, in, e, part);
  Kernel input = ProductKernel(1, rows, in, out, e, part);
  Kernel weight = ProductKernel(1, out, in, rows, e, part);
  weight.bytes += e * out * in;  // adds to what earlier microbatches left
  for (Kernel* kernel : {&forward, &input, &weight}) {
    if (needed == 1) continue;
    kernel->performed_flops = kernel->flops;
    kernel->flops *= needed;
  }
  work->forward.push_back(forward);
  work->backward_input.push_back(input);
  work->backward_weight.push_back(weight);
  if (bias)
    work->backward_weight.push_back(
        MemoryKernel(e * rows * out, KernelPart::kElementwise));
}

}  // namespace weir
