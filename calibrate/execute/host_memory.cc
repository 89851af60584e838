// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/host_memory.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/size_limits.h"
#include "base/units.h"
#include "models/layer_work.h"

namespace weir::calibrate {

double LeastHostBytes(const ExecutionPlan& plan) {
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

absl::Status CheckHostMemory(const ExecutionPlan& plan, double memory_bytes) {
  const double needed = LeastHostBytes(plan);
  if (needed <= memory_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the model takes ", FormatBytes(needed),
      " or more to train in double precision, but this machine has ",
      FormatBytes(memory_bytes),
      "; expected a smaller model, such as tiny-gpt"));
}

absl::Status CheckHostSize(const ExecutionPlan& plan, double num_trainings) {
  // Rate of a plain loop over doubles on one core, rounded down, and the size
  // of the record of one pass.
  constexpr double kFlopsPerSecond = 5e8;
  constexpr double kBytesPerPass = 200;
  const double microbatches =
      static_cast<double>(plan.schedule.total_microbatches());
  const double flops =
      models::ModelFlops(models::LayersOf(plan.model, plan.spec.work), 1) *
      microbatches * plan.num_steps * num_trainings;
  const double passes =
      2.0 * plan.schedule.num_stages * microbatches * plan.num_steps;
  return CheckSize(
      plan.schedule.name,
      absl::StrFormat("%.0f trainings of %d steps of %.0f microbatches, %.3g "
                      "FLOP,",
                      num_trainings, plan.num_steps, microbatches, flops),
      {LeastHostBytes(plan) + passes * kBytesPerPass, flops / kFlopsPerSecond},
      "fewer microbatches (--gbs) or steps, a smaller model, or --no-check");
}

}  // namespace weir::calibrate
