// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/gemm_alignment.h"

#include <numeric>

namespace weir::calibrate {

int AlignmentOf(const StageProgram& program, const StageOp& op, int64_t step) {
  int64_t alignment = 16;
  for (const auto* views : {&op.inputs, &op.outputs}) {
    for (const TensorView& view : *views) {
      if (!view.present()) continue;
      const int bytes = BytesOf(program.buffers[view.buffer].format);
      alignment = std::gcd(alignment, view.offset * bytes);
      alignment = std::gcd(alignment, step * bytes);
    }
  }
  return static_cast<int>(alignment);
}

}  // namespace weir::calibrate
