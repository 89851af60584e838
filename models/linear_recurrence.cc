// SPDX-License-Identifier: Apache-2.0
#include "models/linear_recurrence.h"

#include <algorithm>

#include "models/kernels.h"

namespace weir::models {
namespace {

constexpr double kStateBytes = 4;  // fp32

}  // namespace

void AddChunkGemm(const Shape& shape, double count, double m, double n,
                  double k, LayerWork* work) {
  const double e = shape.element_bytes;
  const KernelPart part = KernelPart::kRecurrence;
  work->forward.push_back(GemmKernel(count, m, n, k, e, part));
  work->backward_input.push_back(GemmKernel(count, m, k, n, e, part));
  work->backward_input.push_back(GemmKernel(count, k, n, m, e, part));
}

void AddDecayRecurrence(const Shape& shape, const DecayRecurrence& recurrence,
                        LayerWork* work) {
  const double q = std::min(recurrence.chunk, shape.sequence_length);
  const double n = recurrence.key_size;
  const double p = recurrence.value_size;
  const double chunks = shape.tokens / q;
  const double heads = chunks * recurrence.heads;
  AddChunkGemm(shape, chunks * recurrence.groups, q, q, n, work);
  AddChunkGemm(shape, heads, q, p, q, work);
  AddChunkGemm(shape, heads, n, p, q, work);
  AddChunkGemm(shape, heads, q, p, n, work);
  const double states = 2 * kStateBytes * heads * n * p;
  AddPasses(KernelPart::kRecurrence, states, 1, 2 * states, 1, work);
}

void AddConvolution(const Shape& shape, double channels, LayerWork* work) {
  const double bytes = shape.element_bytes * shape.tokens * channels;
  AddPasses(KernelPart::kElementwise, 2 * bytes, 1, 3 * bytes, 1, work);
  work->stash_bytes += bytes;
}

}  // namespace weir::models
