// SPDX-License-Identifier: Apache-2.0
// The reasons that torchtitan cannot run a scenario name flags that hold
// together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_join.h"
#include "base/textproto.h"
#include "plan/frameworks/exported_run.h"

namespace weir::plan::torchtitan_obstacles_test {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kRun[] = R"(
    transformer {
      num_layers: 32 hidden_size: 4096 num_heads: 32 num_kv_heads: 8
      feed_forward_size: 14336 vocabulary_size: 128256 gated_feed_forward: true
      rms_norm: true causal: true default_sequence_length: 8192
    }
    cluster: "dgx-h100" num_nodes: 1 schedule: "1f1b" runtime: "torchtitan"
    parallelism { pipeline: 4 data: 2 }
    batch { microbatch_size: 1 global_batch_size: 16 sequence_length: 2048 }
    training {
      precision: MIXED_BF16 flash_attention: true fp32_gradients: false
      distributed_optimizer: false
    }
    communication {
      transfers: OVERLAPPED gradient_reduction: REDUCTION_OVERLAPPED
      bucket_bytes: 104857600
    })";

std::vector<std::string> ObstaclesFor(const Scenario& scenario) {
  const auto run = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(run.ok()) << run.status();
  return ObstaclesOf(Framework::kTorchtitan, *run);
}

TEST(TorchtitanObstaclesTest, TheFlagsThatTheyNameAreEnough) {
  Scenario scenario;
  ASSERT_TRUE(ParseTextProto("test", kRun, &scenario).ok());
  const std::string reasons = absl::StrJoin(ObstaclesFor(scenario), "; ");
  EXPECT_THAT(reasons, HasSubstr("use --fully-sharded"));
  EXPECT_THAT(reasons, HasSubstr("use --fp32-gradients"));
  EXPECT_THAT(reasons, HasSubstr("leave out --bucket-bytes"));
  EXPECT_THAT(reasons, Not(HasSubstr("100MiB")));
  scenario.mutable_training()->set_fully_sharded(true);
  scenario.mutable_training()->set_fp32_gradients(true);
  scenario.mutable_communication()->clear_bucket_bytes();
  EXPECT_THAT(ObstaclesFor(scenario), IsEmpty());
}

}  // namespace weir::plan::torchtitan_obstacles_test
