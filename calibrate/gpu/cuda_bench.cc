// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/cuda_bench.h"

#include <memory>

#include "absl/status/status.h"

namespace weir {

absl::StatusOr<std::unique_ptr<Bench>> OpenCudaBench(
    const CudaBenchOptions& options) {
  (void)options;
  return absl::FailedPreconditionError("no GPU bench yet");
}

}  // namespace weir
