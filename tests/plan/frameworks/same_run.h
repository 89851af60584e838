// SPDX-License-Identifier: Apache-2.0
// Compares a run with the one that its exported file describes.
#ifndef WEIR_TESTS_PLAN_FRAMEWORKS_SAME_RUN_H_
#define WEIR_TESTS_PLAN_FRAMEWORKS_SAME_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "plan/frameworks/exported_run.h"
#include "scenarios/scenario.h"

namespace weir::plan {

// Draws a run with options for which frameworks have settings, on 8 GPUs. Not
// all are legal.
Scenario RandomRun(uint32_t seed);

// Draws one with a model, a schedule and the settings of torchtitan, mostly
// legal.
Scenario RandomTorchtitanRun(uint32_t seed);

// Exports the run into the test's folder and reads the file, with the options
// that its head lists.
absl::StatusOr<scenarios::ResolvedScenario> ReadBack(
    Framework framework, const scenarios::ResolvedScenario& run);

// Returns the scenario in full, in one of its equivalent forms: the model
// instead of its name, blocks per stage instead of a layout, defaults of the
// model filled in, and no fields that have no effect. The runtime's switches
// are in ResolvedScenario::runtime.
Scenario Canonical(const scenarios::ResolvedScenario& run);

// Fails the test unless both are the same run: scenario and runtime.
void ExpectSameRun(const scenarios::ResolvedScenario& found,
                   const scenarios::ResolvedScenario& expected);

}  // namespace weir::plan

#endif  // WEIR_TESTS_PLAN_FRAMEWORKS_SAME_RUN_H_
