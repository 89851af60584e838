// SPDX-License-Identifier: Apache-2.0
// Chunks, the number of stages per rank: how many a scenario has if it does not
// say, and how its costs depend on them.
#ifndef WEIR_SCENARIOS_CHUNKS_H_
#define WEIR_SCENARIOS_CHUNKS_H_

#include "absl/status/status.h"
#include "scenarios/scenario.pb.h"
#include "schedules/registry.h"

namespace weir::scenarios {

// Returns the first of spec.num_chunks, 1 and 2 that is legal for the schedule;
// if none is, the one with the fewest problems.
int LegalChunks(const schedules::ScheduleKind& kind,
                schedules::ScheduleSpec spec);

// Scales the costs of a stage, so that a rank with other chunks does the same
// work. Does not change costs that are given stage by stage.
void ScaleCosts(double factor, GivenCosts* costs);

// Sets the chunks if the scenario has none: those of its layout of layers, of
// its schedule file, or else legal ones for its schedule. Scales given costs
// that are the same for all stages, so that a rank's work does not change.
// Returns errors of the schedule file.
absl::Status FillChunks(Scenario* scenario);

// Replaces chunks that are not legal for `kind` by legal ones, if there are
// any. Scales given costs as FillChunks does.
void SetLegalChunks(const schedules::ScheduleKind& kind, Scenario* scenario);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CHUNKS_H_
