// SPDX-License-Identifier: Apache-2.0
#include "models/kernels.h"
#include "models/sublayers.h"

namespace weir::models {

void AddNorm(const WorkSpec& spec, const Shape& shape, bool after_residual,
             LayerWork* work) {
  const double tensor = LocalBytes(shape);
  work->stash_bytes += tensor;
  if (!spec.fused_residual_norm) {
    AddPasses(KernelPart::kNorm, 2 * tensor, 1, 5 * tensor, 3, work);
    return;
  }
  work->stash_bytes += kStatisticsBytes * shape.local_tokens;
  const double masks = shape.mask_bytes * shape.local_tokens * shape.hidden;
  AddPasses(KernelPart::kNorm, after_residual ? 4 * tensor + masks : 2 * tensor,
            1, 4 * tensor, 1, work);
}

}  // namespace weir::models
