// SPDX-License-Identifier: Apache-2.0
// Small scenarios for tests, and helpers that return their problems.
#ifndef WEIR_TESTS_SCENARIOS_SMALL_SCENARIOS_H_
#define WEIR_TESTS_SCENARIOS_SMALL_SCENARIOS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/textproto.h"
#include "scenarios/scenario.h"

namespace weir::scenarios {

inline Scenario Parse(const std::string& text) {
  Scenario scenario;
  const absl::Status status = ParseTextProto("test", text, &scenario);
  EXPECT_TRUE(status.ok()) << status;
  return scenario;
}

inline std::string MessageOf(const Scenario& scenario) {
  const auto resolved = ResolveScenario("s", scenario);
  EXPECT_EQ(resolved.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(resolved.status().message());
}

inline std::vector<std::string> ProblemsOf(const Scenario& scenario) {
  return absl::StrSplit(MessageOf(scenario), '\n');
}

inline Scenario Small() {
  return Parse(R"(
    model: "gpt2" cluster: "dgx-a100" num_nodes: 1
    parallelism { pipeline: 4 data: 2 }
    batch { microbatch_size: 2 global_batch_size: 32 }
    schedule: "1f1b")");
}

inline Scenario GivenCostsScenario() {
  return Parse(R"(
    parallelism { pipeline: 4 } schedule: "1f1b" num_microbatches: 8
    costs { stages { forward_seconds: 1 backward_seconds: 2 } })");
}

}  // namespace weir::scenarios

#endif  // WEIR_TESTS_SCENARIOS_SMALL_SCENARIOS_H_
