// SPDX-License-Identifier: Apache-2.0
// Restrictions of runtimes on layouts.
#ifndef WEIR_PLAN_SEARCH_INTERLEAVING_H_
#define WEIR_PLAN_SEARCH_INTERLEAVING_H_

#include "absl/strings/string_view.h"
#include "calibrate/profile/runtime.pb.h"
#include "plan/search/space.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

// Returns the fewest pipeline ranks on which Megatron-LM runs several chunks
// per rank; validate_args in megatron/training/arguments.py (November 2025)
// aborts on fewer.
int MegatronMinRanksToInterleave(const Communication& communication);

// Returns the fewest pipeline ranks on which the runtime runs several chunks
// per rank; 1 for any runtime but Megatron-LM.
int MinRanksToInterleave(const Runtime& runtime,
                         const Communication& communication);

// Returns true if the scenario's runtime shards weights and gradients of a plan
// with this shape (Runtime.full_sharding). A runtime that does so only on a
// single pipeline rank, as Megatron-LM with --use-torch-fsdp2, also needs
// untied embeddings and no fp16 (validate_args, November 2025).
bool ShardsFully(const scenarios::ResolvedScenario& scenario,
                 const Shape& shape);

// Returns true if the runtime lists the schedule under any of its names.
bool ListsSchedule(const Runtime& runtime, absl::string_view schedule);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_INTERLEAVING_H_
