// SPDX-License-Identifier: Apache-2.0
// Tests that recomputation of some blocks of each stage adds exactly their
// forward to its backward, and removes exactly what they save.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "scenarios/scenario.h"
#include "sim/bounds/bound.h"
#include "sim/costs/stage_costs.h"
#include "sim/count_flops.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::sim::recompute_test {

using testing::HasSubstr;

constexpr int kStages = 4, kBlocks = 8;

absl::StatusOr<scenarios::ResolvedScenario> Resolve(
    const std::string& training) {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto(
      "test",
      absl::StrCat(R"(model: "llama-3.1-8b" cluster: "dgx-h100" num_nodes: 1
                      parallelism { pipeline: 4 data: 2 }
                      batch { global_batch_size: 16 sequence_length: 4096 }
                      training { )",
                   training, "}"),
      &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return scenarios::ResolveScenario("test", scenario);
}

Costs CostsOf(const std::string& training) {
  const auto resolved = Resolve(training);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  auto costs = ComputeCosts(*resolved, kStages, std::vector<int>(kStages, 1));
  EXPECT_TRUE(costs.ok()) << costs.status();
  return *std::move(costs);
}

std::string Method(const char* method, int n) {
  return absl::StrCat("recompute: RECOMPUTE_FULL recompute_method: ", method,
                      " recompute_num_layers: ", n);
}

TEST(RecomputeTest, EachRecomputedBlockCostsTheSame) {
  const Costs none = CostsOf("recompute: RECOMPUTE_NONE");
  const Costs full = CostsOf("recompute: RECOMPUTE_FULL");
  for (const int n : {1, 3, 5, 8, 20}) {
    const Costs some = CostsOf(Method("RECOMPUTE_BLOCK", n));
    const double part = std::min(n, kBlocks) / double(kBlocks);
    for (int s = 0; s < kStages; ++s) {
      const auto mixed = [&](const auto& of) {
        return of(none.stages[s]) +
               part * (of(full.stages[s]) - of(none.stages[s]));
      };
      const auto backward = [](const StageCosts& stage) {
        return stage.seconds.backward;
      };
      const auto input = [](const StageCosts& stage) {
        return stage.seconds.backward_parts->input;
      };
      const auto saved = [](const StageCosts& stage) {
        return stage.activations.saved_bytes;
      };
      const auto launches = [](const StageCosts& stage) {
        return stage.launches.backward_input.forward_launches;
      };
      const StageCosts& stage = some.stages[s];
      EXPECT_NEAR(stage.seconds.backward / mixed(backward), 1, 1e-9);
      EXPECT_NEAR(stage.seconds.backward_parts->input / mixed(input), 1, 1e-9);
      EXPECT_NEAR(stage.activations.saved_bytes / mixed(saved), 1, 1e-9);
      EXPECT_NEAR(launches(stage), mixed(launches), 1e-6);
      EXPECT_EQ(stage.seconds.forward, none.stages[s].seconds.forward);
    }
  }
}

// Groups of 4 save half as many inputs as groups of 2, and need the memory of
// twice as many blocks while one of them is recomputed.
TEST(RecomputeTest, UniformGroupsTradeInputsForTemporaryMemory) {
  const Costs none = CostsOf("recompute: RECOMPUTE_NONE");
  const Costs full = CostsOf("recompute: RECOMPUTE_FULL");
  const double input = 2.0 * 4096 * 4096;
  const double block = none.stages[1].activations.saved_bytes / kBlocks;
  for (const int n : {2, 4, 8}) {
    const Costs groups = CostsOf(Method("RECOMPUTE_UNIFORM", n));
    const StageCosts& stage = groups.stages[1];
    const int num_groups = kBlocks / n;
    EXPECT_NEAR(stage.activations.saved_bytes, num_groups * input, 1);
    EXPECT_NEAR(stage.activations.recompute_scratch_bytes, n * block - input,
                1);
    EXPECT_NEAR(stage.seconds.backward / full.stages[1].seconds.backward, 1,
                1e-9);
  }
}

TEST(RecomputeTest, ExecutedFlopsIncludeWhatIsRepeated) {
  const auto executed = [](const std::string& training) {
    return CountFlops(*Resolve(training), false, kStages).hardware();
  };
  const double none = executed("recompute: RECOMPUTE_NONE");
  const double full = executed("recompute: RECOMPUTE_FULL");
  EXPECT_NEAR(executed(Method("RECOMPUTE_BLOCK", 2)) /
                  (none + (full - none) * 2 / kBlocks),
              1, 1e-9);
  EXPECT_NEAR(executed(Method("RECOMPUTE_EVERY", 4)) /
                  (none + (full - none) * 2 / kBlocks),
              1, 1e-9);
  EXPECT_NEAR(executed(Method("RECOMPUTE_UNIFORM", 4)) / full, 1, 1e-9);
}

TEST(RecomputeTest, FastRunsAreExactAndBoundsHold) {
  for (const std::string& training :
       {Method("RECOMPUTE_BLOCK", 3), Method("RECOMPUTE_UNIFORM", 4),
        Method("RECOMPUTE_EVERY", 2),
        std::string("recompute: RECOMPUTE_SELECTIVE recompute_modules: MLP")}) {
    const auto resolved = Resolve(training);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const auto result = Simulate(*resolved, {});
    ASSERT_TRUE(result.ok()) << result.status();
    const auto fast = FastSimulator().Estimate(*resolved);
    ASSERT_TRUE(fast.ok()) << fast.status();
    EXPECT_NEAR(fast->batch_seconds / result->batch_seconds(), 1, 1e-9);
    const auto bound = Bounder().Bound(*resolved);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_LE(bound->batch_seconds, result->batch_seconds() * (1 + 1e-9));
    for (const double bytes : bound->peak_bytes) {
      EXPECT_LE(bytes, result->peak_memory_bytes() * (1 + 1e-9));
    }
  }
}

TEST(RecomputeTest, WrongCombinationsAreRefused) {
  const auto message = [](const std::string& training) {
    return std::string(Resolve(training).status().message());
  };
  EXPECT_THAT(message("recompute: RECOMPUTE_FULL recompute_modules: MLP"),
              HasSubstr("training.recompute is full, expected selective with "
                        "training.recompute_modules"));
  EXPECT_THAT(message("recompute: RECOMPUTE_SELECTIVE recompute_num_layers: 2"),
              HasSubstr("training.recompute is selective, expected full with "
                        "training.recompute_num_layers"));
  EXPECT_THAT(message("recompute_method: RECOMPUTE_BLOCK"),
              HasSubstr("training.recompute is none, expected full with "
                        "training.recompute_method"));
  EXPECT_THAT(
      message("recompute: RECOMPUTE_SELECTIVE recompute_modules: MOE "
              "recompute_modules: MLA_UP_PROJ"),
      testing::AllOf(
          HasSubstr("training.recompute_modules has moe, expected others: the "
                    "model has no experts"),
          HasSubstr("training.recompute_modules has mla_up_proj, expected "
                    "others: the model has no latent attention")));
}

// Stages have 8 blocks.
TEST(RecomputeTest, RefusesToRecomputeNothing) {
  const auto run = [](int n) {
    const auto resolved = Resolve(Method("RECOMPUTE_EVERY", n));
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return Simulate(*resolved, {}).status();
  };
  EXPECT_TRUE(run(kBlocks).ok()) << run(kBlocks);
  EXPECT_THAT(
      std::string(run(kBlocks + 1).message()),
      HasSubstr("test: training.recompute_num_layers is 9, expected at most 8 "
                "with the method every: stages have that many blocks"));
}

}  // namespace weir::sim::recompute_test
