// SPDX-License-Identifier: Apache-2.0
#include "models/linear_recurrence.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "models/kernels.h"

namespace weir::models {
namespace {

constexpr double kStateBytes = 4;   // fp32
constexpr double kDeltaChunk = 64;  // tokens, of flash-linear-attention

// GEMMs of a chunk, one for each of `count`: (m x k) by (k x n).
struct ChunkGemm {
  double count = 0, m = 0, n = 0, k = 0;
};

// Adds GEMMs to the forward, and the two GEMMs of their gradients to the
// backward.
void AddChunkGemms(const Shape& shape, Kernel::Variant variant,
                   std::initializer_list<ChunkGemm> gemms, LayerWork* work) {
  const auto add = [&](double count, double m, double n, double k,
                       std::vector<Kernel>* kernels) {
    Kernel kernel = GemmKernel(count, m, n, k, shape.element_bytes,
                               KernelPart::kRecurrence);
    kernel.variant = variant;
    kernels->push_back(kernel);
  };
  for (const auto& [count, m, n, k] : gemms) {
    add(count, m, n, k, &work->forward);
    add(count, m, k, n, &work->backward_input);
    add(count, k, n, m, &work->backward_input);
  }
}

// Adds a pass that writes and reads the states in fp32.
void AddStatePass(double elements, LayerWork* work) {
  const double bytes = 2 * kStateBytes * elements;
  AddPasses(KernelPart::kRecurrence, bytes, 1, 2 * bytes, 1, work);
}

}  // namespace

void AddDecayRecurrence(const Shape& shape, const DecayRecurrence& recurrence,
                        LayerWork* work) {
  const double q = std::min(recurrence.chunk, shape.sequence_length);
  const double n = recurrence.key_size;
  const double p = recurrence.value_size;
  const double chunks = shape.tokens / q;
  const double heads = chunks * recurrence.heads;
  AddChunkGemms(shape, Kernel::Variant::kDecay,
                {{chunks * recurrence.groups, q, q, n},
                 {heads, q, p, q},
                 {heads, n, p, q},
                 {heads, q, p, n}},
                work);
  AddStatePass(heads * n * p, work);
}

void AddDeltaRecurrence(const Shape& shape, const DeltaRecurrence& recurrence,
                        LayerWork* work) {
  const double c = std::min(kDeltaChunk, shape.sequence_length);
  const double k = recurrence.key_size;
  const double v = recurrence.value_size;
  const double count = shape.tokens / c * recurrence.heads;
  AddChunkGemms(shape, Kernel::Variant::kDelta,
                {{2 * count, c, c, k},
                 {count, c, c, c},
                 {count, c, k, c},
                 {2 * count, c, v, c},
                 {2 * count, c, v, k},
                 {count, k, v, c}},
                work);
  AddStatePass(count * k * v, work);
}

void AddConvolution(const Shape& shape, double channels, LayerWork* work) {
  const double bytes = shape.element_bytes * shape.tokens * channels;
  Kernel kernel = MemoryKernel(2 * bytes);
  kernel.variant = Kernel::Variant::kConvolution;
  work->forward.push_back(kernel);
  kernel.bytes = 3 * bytes;
  work->backward_input.push_back(kernel);
  work->stash_bytes += bytes;
}

}  // namespace weir::models
