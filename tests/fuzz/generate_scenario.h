// SPDX-License-Identifier: Apache-2.0
// Generates whole scenarios: shape, model, schedule with options, training,
// cluster and devices. They are small enough to simulate thousands per second.
#ifndef WEIR_TESTS_FUZZ_GENERATE_SCENARIO_H_
#define WEIR_TESTS_FUZZ_GENERATE_SCENARIO_H_

#include "scenarios/scenario.h"
#include "tests/fuzz/choices.h"

namespace weir::fuzz {

struct GeneratedScenario {
  Scenario scenario;  // as a user would write it
  // The simulator's input: from ResolveScenario, or with another cluster and
  // other devices.
  absl::StatusOr<scenarios::ResolvedScenario> resolved;
  bool changed = false;  // `resolved` differs from `scenario`
};

GeneratedScenario GenerateScenario(Choices* choices);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_GENERATE_SCENARIO_H_
