// SPDX-License-Identifier: Apache-2.0
// Generates whole scenarios, small enough to simulate thousands of times a
// second: shape, model, schedule with options, training, cluster, devices.
#ifndef WEIR_TESTS_FUZZ_GENERATE_SCENARIO_H_
#define WEIR_TESTS_FUZZ_GENERATE_SCENARIO_H_

#include "scenarios/scenario.h"
#include "tests/fuzz/choices.h"

namespace weir {

struct GeneratedScenario {
  Scenario scenario;  // as a user would write it
  // What the simulator takes: as ResolveScenario made it, or with a cluster
  // and devices of its own.
  absl::StatusOr<ResolvedScenario> resolved;
  bool changed = false;  // `resolved` has more than `scenario` says
};

GeneratedScenario GenerateScenario(Choices* choices);

}  // namespace weir

#endif  // WEIR_TESTS_FUZZ_GENERATE_SCENARIO_H_
