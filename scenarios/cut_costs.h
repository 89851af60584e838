// SPDX-License-Identifier: Apache-2.0
// Given costs for stages with other numbers of blocks than those for which they
// were recorded.
#ifndef WEIR_SCENARIOS_CUT_COSTS_H_
#define WEIR_SCENARIOS_CUT_COSTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Reports problems of costs.blocks_per_stage. Prepends `prefix` to field names.
void CheckCostBlocks(Problems& problems, absl::string_view prefix,
                     const GivenCosts& costs);

// Returns the costs of consecutive stages with these numbers of blocks. Blocks
// of an inner stage take equal parts of its costs. A block of the first or last
// stage takes the median of the inner stages' blocks, at most an equal part of
// its stage; the rest (embedding, head and loss) stays in the first or last
// stage. With fewer than three stages there is no rest. Sums over all stages do
// not change, except of fields that some stages lack, which are removed.
//
// With replicas, this divides the lower median of each stage over the replicas;
// the parts of a stage are then longer or shorter by the ratio of its own value
// to that median. So the delay of a slow GPU is not taken for an embedding,
// unless half of the replicas or more are slow at this stage. With one replica,
// a slow GPU at an end cannot be distinguished from an embedding or a head.
//
// Compression depends on the output of a stage, not on its size: a stage takes
// codec_seconds, and factors of recorded times, from the recorded stage with
// most of its blocks.
//
// Requires: costs.blocks_per_stage passes CheckCostBlocks; both have the same
// sum; `blocks` are not empty and at least 1.
GivenCosts CutCosts(const GivenCosts& costs,
                    const std::vector<uint32_t>& blocks);

// Cuts the scenario's costs as its parallelism asks: into
// parallelism.blocks_per_stage, which is cleared, or, if the number of stages
// differs, into equal ones. Does nothing if costs.blocks_per_stage is empty.
// Returns a warning about what was assumed, or "".
std::string CutGivenCosts(Problems& problems, Scenario* scenario);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CUT_COSTS_H_
