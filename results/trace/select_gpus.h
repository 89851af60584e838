// SPDX-License-Identifier: Apache-2.0
// Leaves GPUs out of a timeline: replicas and tensor-parallel GPUs usually do
// the same, and a trace of hundreds of GPUs is large.
#ifndef WEIR_RESULTS_TRACE_SELECT_GPUS_H_
#define WEIR_RESULTS_TRACE_SELECT_GPUS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "results/result.pb.h"

namespace weir::results {

struct GpuSelection {
  // Only the GPUs of this data-parallel rank, and of them those of
  // `tensor_rank`; absent: all.
  std::optional<uint32_t> replica;
  uint32_t tensor_rank = 0;
  std::vector<uint32_t> ranks;  // pipeline ranks; empty: all

  bool all() const { return !replica.has_value() && ranks.empty(); }
};

// Returns the result with only these GPUs and their events; transfers stay if
// both of their GPUs do. Returns InvalidArgument if a replica or rank does not
// exist.
absl::StatusOr<Result> SelectGpus(const Result& result,
                                  const GpuSelection& selection);

}  // namespace weir::results

#endif  // WEIR_RESULTS_TRACE_SELECT_GPUS_H_
