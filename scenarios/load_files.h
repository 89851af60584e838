// SPDX-License-Identifier: Apache-2.0
// Loads the files that a scenario names and checks them against each other.
#ifndef WEIR_SCENARIOS_LOAD_FILES_H_
#define WEIR_SCENARIOS_LOAD_FILES_H_

#include <vector>

#include "absl/status/status.h"
#include "base/problems.h"
#include "models/model.pb.h"
#include "scenarios/check_scenario.h"
#include "scenarios/scenario.h"

namespace weir::scenarios {

// Replaces the number of MTP modules by that of the scenario.
void SetMtpModules(Problems& problems, const Training& training, Model* model);

// Replaces the groups of experts and their capacity by those of the scenario.
void SetRouting(Problems& problems, const Training& training, Model* model);

// Loads the model, cluster, device profiles, runtime and recipe of
// `resolved.scenario` into `resolved`, with its default set, and fills in the
// defaults that depend on them. Adds what it finds to `problems`, and returns
// these with `failures` and its own failures (MergeFailures).
// `fields_are_sound`: CheckFields found no problem; otherwise files are loaded
// but not checked against the fields.
absl::Status LoadFiles(Problems& problems, bool fields_are_sound,
                       StageCheck stages, std::vector<absl::Status> failures,
                       ResolvedScenario& resolved);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_LOAD_FILES_H_
