// SPDX-License-Identifier: Apache-2.0
// What the operations of a recorded step wait for, which traces do not say.
#ifndef WEIR_PLAN_STRAGGLERS_RECORDED_GRAPH_H_
#define WEIR_PLAN_STRAGGLERS_RECORDED_GRAPH_H_

#include "absl/status/statusor.h"
#include "plan/stragglers/operation_graph.h"
#include "results/import/messages.h"
#include "results/import/recorded_run.h"

namespace weir::plan {

// Returns the dependencies of "Understanding Stragglers in Large Model Training
// Using What-if Analysis" (arXiv 2505.05713, section 3.2; details from the
// authors' program, github.com/ByteDance-Seed/StragglerAnalysis):
//   - passes of a worker run in their recorded order, and so do its messages of
//     each kind, and its gathers and reductions;
//   - a send waits for its pass, a pass for its receive, and a receive for the
//     previous pass of its direction; the first backward message waits for the
//     second last pass before the first backward;
//   - the first forward of a worker waits for its last weight gather;
//   - after the last pass: garbage collection, norm reduction, tied reduction,
//     gradient reductions, gradient clip, optimizer step, one after another;
//   - GroupsOf() begin together.
// Without recorded messages a pass waits for that of the neighboring stage.
// Gradient reductions that overlap with passes wait for the last backward that
// ended before they started. Operation i of the graph is step.begin[i]. Returns
// FailedPrecondition with the step if operations wait for each other.
absl::StatusOr<OperationGraph> GraphOfStep(
    const results::RecordedStep& step, const results::OperationGroups& groups);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_RECORDED_GRAPH_H_
