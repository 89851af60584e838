// SPDX-License-Identifier: Apache-2.0
// Memory of runtimes with fully sharded weights.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"

namespace weir::sim::fsdp_test {

double PeakBytes(const char* runtime, int global_batch_size) {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto(
      "test",
      absl::StrCat(R"(model: "llama-3.1-8b" cluster: "dgx-h100" num_nodes: 1
                      parallelism { data: 8 }
                      training { fully_sharded: true
                                 recompute: RECOMPUTE_OPERATORS }
                      runtime: ")",
                   runtime, R"(" batch { sequence_length: 8192
                      global_batch_size: )",
                   global_batch_size, "}"),
      &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  const auto result = Simulate(*resolved, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result->peak_memory_bytes();
}

// Each of several microbatches adds to sharded gradients.
TEST(FsdpTest, TorchtitanAccumulatesShards) {
  constexpr double kParameters = 8.03e9;
  for (const char* runtime : {"torchtitan", "torchtitan-compile"}) {
    const double one = PeakBytes(runtime, 8), two = PeakBytes(runtime, 16);
    EXPECT_GE(two, one) << runtime;
    EXPECT_LE(two - one, 1.01 * 4 * kParameters / 8) << runtime;
    EXPECT_NEAR(PeakBytes(runtime, 32), two, 1) << runtime;
  }
}

}  // namespace weir::sim::fsdp_test
