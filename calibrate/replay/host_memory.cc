// SPDX-License-Identifier: Apache-2.0
#include "calibrate/replay/host_memory.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/units.h"

namespace weir {

double LeastHostBytes(const ReplayPlan& plan) {
  double elements = 0;
  for (const auto& program : plan.programs) {
    for (const StageBuffer& buffer : program->buffers) {
      if (buffer.buffer_class == BufferClass::kWeights ||
          buffer.buffer_class == BufferClass::kGradients ||
          buffer.buffer_class == BufferClass::kOptimizerState) {
        elements += static_cast<double>(buffer.num_elements);
      }
    }
  }
  return elements * sizeof(double);
}

double HostMemoryBytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(sysconf(_SC_PAGESIZE));
}

absl::Status CheckHostMemory(const ReplayPlan& plan, double memory_bytes) {
  const double needed = LeastHostBytes(plan);
  if (needed <= memory_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the model takes ", FormatBytes(needed),
      " and more to train in double precision, this machine has ",
      FormatBytes(memory_bytes), ": expected a smaller one, as tiny-gpt"));
}

}  // namespace weir
