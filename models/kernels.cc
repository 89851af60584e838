// SPDX-License-Identifier: Apache-2.0
#include "models/kernels.h"

#include <cmath>

#include "models/collectives.h"

namespace weir::models {

Kernel MemoryKernel(double bytes, KernelPart part, int launches) {
  Kernel kernel;
  kernel.launches = launches;
  kernel.part = part;
  kernel.bytes = bytes;
  return kernel;
}

Kernel GemmKernel(double batch, double m, double n, double k,
                  double element_bytes, KernelPart part) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::kGemm;
  kernel.part = part;
  kernel.batch = batch;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = 2 * batch * m * n * k;
  kernel.bytes = element_bytes * batch * (m * k + k * n + m * n);
  return kernel;
}

double RowAlignment(double length, double other_length) {
  constexpr double kMost = 64;
  double alignment = kMost;
  for (const double elements : {length, other_length}) {
    if (!(elements > 0) || elements != std::floor(elements)) return 0;
    while (std::fmod(elements, alignment) != 0) alignment /= 2;
  }
  return alignment;
}

void SetColumnPieces(const WorkSpec& spec, Linear* linear) {
  if (!spec.tensor_pieces || !spec.sequence_parallel) return;
  linear->forward_pieces = spec.tensor_parallel;
  linear->input_pieces = 1;
}

void SetRowPieces(const WorkSpec& spec, Linear* linear) {
  if (!spec.tensor_pieces || !spec.sequence_parallel) return;
  if (spec.tensor_parallel == 1) return;
  linear->forward_pieces = kReduceScatterPieces;
  linear->input_pieces = spec.tensor_parallel;
}

void AddLinear(const WorkSpec& spec, const Linear& linear, LayerWork* work) {
  const auto& [part, batch, rows, in, out, bias, needed, forward_pieces,
               input_pieces] = linear;
  const double e = spec.bytes_per_element;
  const double g = spec.gradient_bytes;
  const double weights = batch * in * out;
  Kernel forward = GemmKernel(batch, rows / forward_pieces, out, in, e, part);
  Kernel input = GemmKernel(batch, rows / input_pieces, in, out, e, part);
  Kernel weight = GemmKernel(batch, out, in, rows, e, part);
  if (spec.fused_gradient_accumulation) weight.bytes += (2 * g - e) * weights;
  for (Kernel* kernel : {&forward, &input, &weight}) {
    // The rows of all three GEMMs are vectors of the input, the output or the
    // weights.
    kernel->row_alignment = RowAlignment(in, out);
    if (needed == 1) continue;
    kernel->performed_flops = kernel->flops;
    kernel->flops *= needed;
  }
  work->forward.insert(work->forward.end(), forward_pieces, forward);
  work->backward_input.insert(work->backward_input.end(), input_pieces, input);
  work->backward_weight.push_back(weight);
  if (!spec.fused_gradient_accumulation) {
    work->backward_weight.push_back(MemoryKernel((e + 2 * g) * weights));
  }
  if (bias) {
    work->backward_weight.push_back(MemoryKernel(e * batch * rows * out));
  }
}

void AddPasses(KernelPart part, double forward_bytes, int forward_launches,
               double backward_bytes, int backward_launches, LayerWork* work) {
  if (forward_bytes > 0) {
    work->forward.push_back(
        MemoryKernel(forward_bytes, part, forward_launches));
  }
  if (backward_bytes > 0) {
    work->backward_input.push_back(
        MemoryKernel(backward_bytes, part, backward_launches));
  }
}

}  // namespace weir::models
