// SPDX-License-Identifier: Apache-2.0
// The number of stages per rank, which is a property of the schedule.
#ifndef WEIR_CLI_OPTIONS_CHUNKS_H_
#define WEIR_CLI_OPTIONS_CHUNKS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scenarios/scenario.h"
#include "schedules/registry.h"

namespace weir::cli {

// Returns the first of spec.num_chunks, 1 and 2 that is legal for the schedule;
// if none is, the one with the fewest problems.
int LegalChunks(const schedules::ScheduleKind& kind,
                schedules::ScheduleSpec spec);

// Scales the costs of a stage, so that a rank with other chunks does the same
// work. Does not change costs that are given stage by stage.
void ScaleCosts(double factor, TextbookCosts* costs);

// Sets chunks that are legal for `kind`, if there are any. Scales textbook
// costs that are the same for all stages, so that a rank's work does not
// change.
void SetLegalChunks(const schedules::ScheduleKind& kind, Scenario* scenario);

// The same for the chunks of a schedule file. Does nothing for a schedule's
// name, or if the scenario specifies chunks.
absl::Status SetChunksOfFile(const std::string& name_or_path,
                             Scenario* scenario);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_CHUNKS_H_
