// SPDX-License-Identifier: Apache-2.0
// How many stages a rank holds is a property of the schedule.
#ifndef WEIR_CLI_CHUNKS_H_
#define WEIR_CLI_CHUNKS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scenarios/scenario.h"
#include "schedules/registry.h"

namespace weir {

// spec.num_chunks where the schedule takes it, else 1, else 2, whichever is
// legal first; where none is, the one of them with the fewest problems.
int LegalChunks(const ScheduleKind& kind, ScheduleSpec spec);

// The same work of a rank, cut into other chunks; costs that are given stage by
// stage stay.
void ScaleCosts(double factor, TextbookCosts* costs);

// Gives the scenario chunks that are legal for `kind`, if there are. Textbook
// costs that are the same for all stages are scaled, so that a rank's work
// stays what it was.
void SetLegalChunks(const ScheduleKind& kind, Scenario* scenario);

// The same for a schedule file, whose chunks are what they are. Nothing for a
// name, or where the scenario gives chunks.
absl::Status SetChunksOfFile(const std::string& name_or_path,
                             Scenario* scenario);

}  // namespace weir

#endif  // WEIR_CLI_CHUNKS_H_
