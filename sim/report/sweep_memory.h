// SPDX-License-Identifier: Apache-2.0
// Sums allocations and frees of one GPU to its memory over time.
#ifndef WEIR_SIM_REPORT_SWEEP_MEMORY_H_
#define WEIR_SIM_REPORT_SWEEP_MEMORY_H_

#include "absl/types/span.h"
#include "sim/report/memory.h"

namespace weir::sim {

struct MemoryEvent {
  double seconds;
  MemoryClass::Kind kind;
  double bytes;  // below 0: freed
  int count;     // number of equal allocations; below 0: freed
  bool of_step = false;
};

struct SweepOptions {
  // Buffers of optimizer steps that do not fit freed blocks of passes.
  double separate_bytes = 0;
  // Gathered weights, gradients and everything else are allocated on different
  // streams (Runtime.allocates_by_stream).
  bool by_stream = false;
  bool keep_samples = false;
};

// Returns the memory over time of `lasting` bytes and of the events, which must
// be in order of time. Simultaneous events count when all of them have
// happened.
MemoryTimeline SweepMemory(const MemoryByKind& lasting,
                           absl::Span<const MemoryEvent> events,
                           const SweepOptions& options);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_SWEEP_MEMORY_H_
