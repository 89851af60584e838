// SPDX-License-Identifier: Apache-2.0
// Groups of pipelines that do the same at the same time.
#ifndef WEIR_RESULTS_REPORT_PIPELINES_H_
#define WEIR_RESULTS_REPORT_PIPELINES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "results/result.pb.h"

namespace weir::results {

// One GPU per pipeline rank: a replica and a tensor rank.
struct PipelineGroup {
  // The first pipeline of the group, by replica, then tensor rank.
  uint32_t replica = 0, tensor_rank = 0;
  size_t num_pipelines = 0;
};

// Returns the groups of a result in the order of their first pipelines. In a
// group, all pipelines have the same events on the same ranks, whose times
// differ from the first pipeline's by at most 1e-6 of the makespan, and the
// same peak memory within 1e-6. Requires: the timeline is valid.
std::vector<PipelineGroup> GroupPipelines(const Result& result);

// Returns the first pipeline of a group as a result of its own, in which it is
// replica 0 and tensor rank 0. Returns the errors of SelectGpus.
absl::StatusOr<Result> PipelineOf(const Result& result,
                                  const PipelineGroup& group);

}  // namespace weir::results

#endif  // WEIR_RESULTS_REPORT_PIPELINES_H_
