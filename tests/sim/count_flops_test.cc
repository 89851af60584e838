// SPDX-License-Identifier: Apache-2.0
#include "sim/count_flops.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "models/model.h"
#include "sim/kernel_list.h"
#include "sim/simulate.h"

namespace weir::sim::count_flops_test {

constexpr double kSequences = 8, kLength = 1024, kLayers = 12, kHidden = 768,
                 kVocabulary = 50257;

scenarios::ResolvedScenario ResolveText(const std::string& text) {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto("test", text, &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *resolved;
}

// Without biases and padding, of which the closed forms know nothing.
scenarios::ResolvedScenario SmallGpt(const std::string& changes,
                                     bool causal = true) {
  return ResolveText(absl::StrCat(
      R"(transformer { num_layers: 12 hidden_size: 768 num_heads: 12
                       vocabulary_size: 50257 num_positions: 1024
                       tied_embeddings: true causal: )",
      causal ? "true" : "false",
      R"(} cluster: "dgx-a100" num_nodes: 1 schedule: "1f1b" runtime: "none"
         batch { global_batch_size: 8 sequence_length: 1024 }
)",
      changes.find("training") == std::string::npos
          ? "training { flash_attention: true } "
          : "",
      changes));
}

// Six FLOP per weight of a matrix and token, and 12 l s h for attention.
double ClosedForm() {
  const double matrices =
      12 * kLayers * kHidden * kHidden + kHidden * kVocabulary;
  return kSequences * kLength *
         (6 * matrices + 12 * kLayers * kLength * kHidden);
}

double ClosedAttention() {
  return kSequences * kLength * 12 * kLayers * kLength * kHidden;
}

TEST(CountFlopsTest, FormulasAgreeWhereTheyShould) {
  for (const char* layout :
       {"", "parallelism { tensor: 2 pipeline: 2 data: 2 }"}) {
    const FlopCounts counts = CountFlops(SmallGpt(layout), false);
    EXPECT_NEAR(counts.model() / ClosedForm(), 1, 1e-9) << layout;
    EXPECT_NEAR(counts.megatron() / ClosedForm(), 1, 1e-9) << layout;
    // It also counts the parameters of norms.
    EXPECT_NEAR(counts.palm() / ClosedForm(), 1, 1e-3) << layout;
    EXPECT_GT(counts.palm(), ClosedForm()) << layout;
    const double half = 0.5 * ClosedAttention();
    EXPECT_NEAR(counts.model() - counts.model_causal(), half, 1e-6 * half);
    EXPECT_NEAR(counts.palm() - counts.palm_causal(), half, 1e-6 * half);
    // Fused attention computes the scores of the backward again.
    EXPECT_NEAR(counts.hardware() - counts.model_causal(),
                ClosedAttention() / 12, 1e-6 * half);
  }
}

TEST(CountFlopsTest, RecomputationCountsInMegatronAndHardwareOnly) {
  const FlopCounts without = CountFlops(SmallGpt(""), false);
  const FlopCounts full = CountFlops(
      SmallGpt("training { flash_attention: true recompute: RECOMPUTE_FULL }"),
      false);
  EXPECT_EQ(full.model(), without.model());
  EXPECT_EQ(full.palm(), without.palm());
  const double logits = 6 * kSequences * kLength * kHidden * kVocabulary;
  EXPECT_NEAR((full.megatron() - logits) / (without.megatron() - logits),
              4.0 / 3, 1e-9);
  EXPECT_GT(full.hardware(), 1.2 * without.hardware());
  EXPECT_LT(full.hardware(), 4.0 / 3 * without.hardware());
}

TEST(CountFlopsTest, WithoutAMaskNothingIsSkipped) {
  const FlopCounts counts = CountFlops(SmallGpt("", false), false);
  EXPECT_EQ(counts.model(), counts.model_causal());
  EXPECT_EQ(counts.palm(), counts.palm_causal());
  EXPECT_GT(counts.hardware(), counts.model());
}

TEST(CountFlopsTest, AForwardIsAThird) {
  const FlopCounts training = CountFlops(SmallGpt(""), false);
  const FlopCounts forward = CountFlops(SmallGpt(""), true);
  EXPECT_NEAR(3 * forward.model(), training.model(), 1e-9 * training.model());
  EXPECT_NEAR(3 * forward.palm(), training.palm(), 1e-9 * training.palm());
  EXPECT_NEAR(3 * forward.megatron(), training.megatron(),
              1e-9 * training.megatron());
}

TEST(CountFlopsTest, OnlyTheExpertsOfATokenCount) {
  const auto mixture = ResolveText(R"(
      model: "mixtral-8x7b" cluster: "dgx-h100" schedule: "1f1b"
      runtime: "none"
      parallelism { tensor: 4 data: 1 sequence_parallel: true }
      batch { global_batch_size: 4 sequence_length: 4096 })");
  const FlopCounts counts = CountFlops(mixture, false);
  EXPECT_NEAR(counts.palm() / counts.model(), 1, 0.01);
  EXPECT_LT(counts.palm(),
            6 * models::CountParameters(mixture.model) * 4 * 4096 / 2);
}

TEST(CountFlopsTest, ResultsContainThem) {
  const auto scenario = SmallGpt("parallelism { data: 1 }");
  const auto result = Simulate(scenario);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->flops_per_batch().model(),
            CountFlops(scenario, false).model());
  EXPECT_EQ(result->flops_formula(), "model");
  EXPECT_NEAR(
      result->flops_per_batch().model() / (result->batch_seconds() * 312e12),
      result->model_flops_utilization(), 1e-9);
}

TEST(CountFlopsTest, GivenCostsHaveNone) {
  const auto given = ResolveText(R"(
      parallelism { pipeline: 2 } schedule: "gpipe" num_microbatches: 2
      costs { stages { forward_seconds: 1 backward_seconds: 2 } })");
  EXPECT_EQ(CountFlops(given, false).ByteSizeLong(), 0);
}

// Every third layer sees everything, the others 256 of 1024 tokens.
TEST(CountFlopsTest, WindowsOfSomeLayersCountByLayer) {
  const scenarios::ResolvedScenario plain = SmallGpt("");
  scenarios::ResolvedScenario windows = plain;
  const auto model = models::ParseModel(
      "test", absl::StrCat("transformer {",
                           plain.model.transformer().ShortDebugString(),
                           R"( kinds { letter: "S" name: "sliding"
                                      block { sliding_window: 256 } }
                              kinds { letter: "F" name: "full" }
                              pattern: "SSF" })"));
  ASSERT_TRUE(model.ok()) << model.status();
  windows.model = *model;
  const FlopCounts before = CountFlops(plain, false);
  const FlopCounts after = CountFlops(windows, false);
  const double attention = ClosedAttention();
  EXPECT_NEAR(after.model(), before.model() - 0.5 * attention,
              1e-9 * attention);
  EXPECT_NEAR(after.palm(), before.palm() - 0.5 * attention, 1e-9 * attention);
  // A query sees 256 (1 - 256 / 2048) keys of a window, and half of 1024.
  const double kept = (2 * 256 * 0.875 / 1024 + 0.5) / 3;
  EXPECT_NEAR(after.model_causal(), before.model() - (1 - kept) * attention,
              1e-9 * attention);
  EXPECT_NEAR(after.palm_causal(), before.palm() - (1 - kept) * attention,
              1e-9 * attention);
}

// The kernels of a roofline are all kernels of a microbatch.
TEST(KernelListTest, HasTheFlopsOfTheHardware) {
  for (const char* layout :
       {"", "parallelism { tensor: 2 pipeline: 2 data: 2 }",
        "parallelism { pipeline: 4 chunks: 1 } training { recompute: "
        "RECOMPUTE_FULL }"}) {
    const scenarios::ResolvedScenario scenario = SmallGpt(layout);
    const auto list = ListKernels(scenario);
    ASSERT_TRUE(list.ok()) << list.status();
    double flops = 0;
    for (const ListedKernel& kernel : list->kernels) {
      flops += kernel.flops * kernel.count;
      EXPECT_GT(kernel.seconds, 0) << kernel.part;
      // No kernel is faster than the peak.
      EXPECT_LE(kernel.flops / kernel.seconds, list->peak_flops[0].second);
    }
    const Parallelism& parallelism = scenario.scenario.parallelism();
    const double gpus = 1.0 * scenario.num_microbatches *
                        scenario.placement.data * parallelism.tensor();
    const auto num_stages = static_cast<int>(parallelism.pipeline());
    const FlopCounts counts = CountFlops(scenario, false, num_stages);
    EXPECT_NEAR(flops * gpus / counts.hardware(), 1, 1e-9) << layout;
  }
}

}  // namespace weir::sim::count_flops_test
