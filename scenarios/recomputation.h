// SPDX-License-Identifier: Apache-2.0
// What a scenario recomputes (docs/recomputation.md) or copies to the host.
#ifndef WEIR_SCENARIOS_RECOMPUTATION_H_
#define WEIR_SCENARIOS_RECOMPUTATION_H_

#include "base/problems.h"
#include "models/model.pb.h"
#include "models/recompute.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

models::Recompute RecomputeOf(const Training& training);

// Replaces all fields about recomputation.
void SetRecompute(const models::Recompute& recompute, Training* training);

// Reports values out of range, and modules or methods of another mode.
void CheckRecomputation(Problems& problems, const Training& training);

// Reports values out of range, and what cannot be combined with offloading to
// the host (docs/offload.md).
void CheckOffload(Problems& problems, const Training& training);

// Reports modules that the model does not have.
void CheckRecomputation(Problems& problems, const Training& training,
                        const Transformer& transformer);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_RECOMPUTATION_H_
