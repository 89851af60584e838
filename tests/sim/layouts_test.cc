// SPDX-License-Identifier: Apache-2.0
// Tests of layouts with MTP modules, shards of the vocabulary, and packed
// sequences: work is conserved, fast estimates equal full simulations, and
// bounds hold.
#include <string>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scenarios/scenario.h"
#include "sim/bounds/bound.h"
#include "sim/costs/stage_costs.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::sim::layouts_test {

using testing::HasSubstr;

// A GPT with 8 blocks and untied embeddings on 4 or 8 GPUs.
absl::StatusOr<scenarios::ResolvedScenario> Resolve(
    const std::string& parallelism, const std::string& model = "",
    const std::string& more = "", const char* schedule = "1f1b",
    const std::string& batch = "") {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto("test",
                                             absl::StrCat(R"(
        transformer { num_layers: 8 hidden_size: 1024 num_heads: 16
                      vocabulary_size: 64000 causal: true )",
                                                          model, R"( }
        cluster: "dgx-h100" num_nodes: 1 schedule: ")",
                                                          schedule, R"("
        parallelism { pipeline: 4 )",
                                                          parallelism, R"( }
        batch { sequence_length: 4096 global_batch_size: 16 )",
                                                          batch, " } ", more),
                                             &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return scenarios::ResolveScenario("test", scenario);
}

// Checks that fast estimates equal the simulation, and that the bound holds and
// is not far from it.
Result Check(const absl::StatusOr<scenarios::ResolvedScenario>& resolved) {
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  if (!resolved.ok()) return {};
  const auto result = Simulate(*resolved);
  EXPECT_TRUE(result.ok()) << result.status();
  const auto fast = FastSimulator().Estimate(*resolved);
  EXPECT_TRUE(fast.ok()) << fast.status();
  const auto bound = BoundOf(*resolved);
  EXPECT_TRUE(bound.ok()) << bound.status();
  if (!result.ok() || !fast.ok() || !bound.ok()) return {};
  EXPECT_NEAR(fast->batch_seconds / result->batch_seconds(), 1, 1e-9);
  EXPECT_NEAR(
      *std::max_element(fast->peak_bytes.begin(), fast->peak_bytes.end()) /
          result->peak_memory_bytes(),
      1, 1e-9);
  EXPECT_LE(bound->batch_seconds, result->batch_seconds() * (1 + 1e-9));
  EXPECT_GE(bound->batch_seconds, result->batch_seconds() * 0.7);
  EXPECT_LE(bound->any_order_seconds, result->batch_seconds() * (1 + 1e-9));
  return *result;
}

Costs CostsOf(const absl::StatusOr<scenarios::ResolvedScenario>& resolved) {
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  auto costs = ComputeCosts(*resolved, 4, {1, 1, 1, 1});
  EXPECT_TRUE(costs.ok()) << costs.status();
  return *std::move(costs);
}

constexpr char kMtp[] = "num_mtp_modules: 1";

TEST(LayoutsTest, ModulesMoveWithTheirWork) {
  const Costs with_head = CostsOf(Resolve("layout: \"Et*3|t*3|t*2|mL\"", kMtp));
  const Costs apart = CostsOf(Resolve("layout: \"Et*3|t*3|t*2m|L\"", kMtp));
  const Costs none = CostsOf(Resolve("layout: \"Et*3|t*3|t*2|L\""));
  const auto all = [](const Costs& costs) {
    double seconds = 0;
    for (const StageCosts& stage : costs.stages) {
      seconds += stage.seconds.forward + stage.seconds.backward;
    }
    return seconds;
  };
  EXPECT_NEAR(all(apart) / all(with_head), 1, 1e-9);
  EXPECT_EQ(apart.model_flops, with_head.model_flops);
  EXPECT_GT(apart.stages[2].seconds.forward,
            with_head.stages[2].seconds.forward);
  // The head has the logits of the module in both cases.
  EXPECT_GT(apart.stages[3].seconds.forward,
            1.8 * none.stages[3].seconds.forward);
  // The stage of the module has a copy of the embedding, and sends the hidden
  // states of the last block as well.
  const double table = 2 * 64000.0 * 1024;
  EXPECT_EQ(apart.stages[2].communication.output_bytes,
            2 * with_head.stages[2].communication.output_bytes);
  EXPECT_GT(apart.stages[2].parameters.weight_bytes,
            with_head.stages[2].parameters.weight_bytes + table);
  EXPECT_EQ(apart.tied_stage, 2);
  EXPECT_EQ(with_head.tied_stage, 3);
  EXPECT_EQ(none.tied_gradient_bytes, 0);
  // fp16 gradients of the table.
  EXPECT_EQ(apart.tied_gradient_bytes, table);
}

TEST(LayoutsTest, FastEqualsFullWithModulesApart) {
  const Result with_head =
      Check(Resolve("layout: \"Et*3|t*3|t*2|mL\" data: 2", kMtp));
  const Result apart =
      Check(Resolve("layout: \"Et*3|t*3|t*2m|L\" data: 2", kMtp));
  EXPECT_EQ(apart.flops_per_batch().model(),
            with_head.flops_per_batch().model());
  Check(Resolve("layout: \"E|t|t|t|t|t*4|m|L\" chunks: 2", kMtp, "",
                "interleaved-1f1b"));
}

TEST(LayoutsTest, TheScenarioChoosesTheNumberOfModules) {
  const auto without = Resolve("", kMtp, "training { mtp_num_layers: 0 }");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->model.transformer().num_mtp_modules(), 0u);
  EXPECT_EQ(CostsOf(without).model_flops, CostsOf(Resolve("")).model_flops);
  EXPECT_EQ(
      *CostsOf(Resolve("", "", "training { mtp_num_layers: 1 }")).model_flops,
      *CostsOf(Resolve("", kMtp)).model_flops);
}

TEST(LayoutsTest, ProblemsOfModules) {
  EXPECT_THAT(
      std::string(
          Resolve("layout: \"Et*3|t*3|t*2|L\"", kMtp).status().message()),
      HasSubstr("stage 3 has 'L', expected 'm', the model's layer 9 (MTP "
                "module 0)"));
  EXPECT_THAT(std::string(Resolve("layout: \"Et*3|t*3|t*2m|L\"",
                                  "num_mtp_modules: 1 tied_embeddings: true")
                              .status()
                              .message()),
              HasSubstr("has MTP modules (m) in stage 2, expected the last "
                        "stage: the model's embeddings are tied"));
}

constexpr char kOneBarrier[] = "vocabulary_parallel: VOCABULARY_ONE_BARRIER";

TEST(LayoutsTest, ShardsOfTheVocabularyBalanceThePipeline) {
  const auto baseline = Resolve("");
  const auto sharded = Resolve(kOneBarrier);
  const Costs before = CostsOf(baseline), after = CostsOf(sharded);
  EXPECT_NEAR(*after.model_flops / *before.model_flops, 1, 1e-12);
  double all_before = 0, all_after = 0;
  for (int stage = 0; stage < 4; ++stage) {
    all_before += before.stages[stage].parameters.weight_bytes;
    all_after += after.stages[stage].parameters.weight_bytes;
  }
  EXPECT_NEAR(all_after / all_before, 1, 1e-12);
  // The stages in the middle are equal, the others differ by a norm and the
  // lookup.
  const double middle = after.stages[1].seconds.forward;
  EXPECT_EQ(after.stages[2].seconds.forward, middle);
  EXPECT_NEAR(after.stages[0].seconds.forward / middle, 1, 0.05);
  EXPECT_NEAR(after.stages[3].seconds.forward / middle, 1, 0.05);
  EXPECT_GT(before.stages[3].seconds.forward,
            1.5 * before.stages[1].seconds.forward);
}

// One microbatch more in flight for each barrier.
TEST(LayoutsTest, BarriersKeepMicrobatchesInFlight) {
  const Result baseline = Check(Resolve("data: 2"));
  const Result one = Check(Resolve(absl::StrCat(kOneBarrier, " data: 2")));
  const Result two =
      Check(Resolve("vocabulary_parallel: VOCABULARY_TWO_BARRIERS data: 2"));
  EXPECT_LT(one.batch_seconds(), baseline.batch_seconds());
  const auto resolved = Resolve(kOneBarrier);
  const double saved = CostsOf(resolved).stages[0].activations.saved_bytes;
  const auto first = [](const Result& result) {
    return result.ranks(0).peak_memory_bytes();
  };
  EXPECT_NEAR((first(two) - first(one)) / saved, 1, 1e-6);
}

TEST(LayoutsTest, PackedSequences) {
  const auto resolve = [](const std::string& lengths) {
    return Resolve("data: 2", "", "training { flash_attention: true }", "1f1b",
                   lengths);
  };
  const Result whole = Check(resolve(""));
  const Result fixed = Check(resolve("packed_sequences { fixed: 1024 }"));
  const Result varied = Check(resolve(
      "packed_sequences { log_normal { mean: 1000 deviation: 1500 } }"));
  EXPECT_LT(fixed.batch_seconds(), whole.batch_seconds());
  // Attention: 12 tokens s h per block in forward and backward.
  const double attention = 12.0 * 8 * 1024 * 16 * 4096;
  EXPECT_NEAR(
      (whole.flops_per_batch().model() - fixed.flops_per_batch().model()) /
          (attention * (4096 - 1024)),
      1, 1e-9);
  EXPECT_GT(varied.batch_seconds(), fixed.batch_seconds());
  // Documents as long as the sequence.
  EXPECT_EQ(Check(resolve("packed_sequences { fixed: 4096 }")).batch_seconds(),
            whole.batch_seconds());
}

}  // namespace weir::sim::layouts_test
