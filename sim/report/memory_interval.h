// SPDX-License-Identifier: Apache-2.0
// The error of a predicted peak memory. docs/uncertainty.md explains it.
#ifndef WEIR_SIM_REPORT_MEMORY_INTERVAL_H_
#define WEIR_SIM_REPORT_MEMORY_INTERVAL_H_

#include "results/result.pb.h"
#include "scenarios/scenario.h"

namespace weir::sim {

// A peak of a GPU.
struct PeakMemory {
  double allocated_bytes = 0;  // tensors
  double reserved_bytes = 0;   // context and libraries
  double communicator_bytes = 0;

  double bytes() const {
    return allocated_bytes + reserved_bytes + communicator_bytes;
  }
};

MemoryUncertainty MemoryUncertaintyOf(
    const scenarios::ResolvedScenario& scenario, const PeakMemory& peak);

// Sets the uncertainty of the peak memory of a result, and the interval that
// contains it in nine cases of ten. Requires: its ranks and peak_memory_bytes
// are set.
void FillMemoryInterval(const scenarios::ResolvedScenario& scenario,
                        Result* result);

// Returns the fraction of a GPU's memory that a plan must leave free so that
// the upper end of the interval of its peak still fits. `num_gpus` > 1: with
// communicators.
double MemoryMargin(const scenarios::ResolvedScenario& scenario,
                    double memory_bytes, int num_gpus);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_MEMORY_INTERVAL_H_
