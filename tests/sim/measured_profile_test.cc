// SPDX-License-Identifier: Apache-2.0
// Tests the effect of a measured profile on a prediction and its evidence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/textproto.h"
#include "calibrate/pricing/collective_seconds.h"
#include "sim/costs/stage_costs.h"
#include "sim/simulate.h"
#include "tests/sim/measured.h"
#include "tests/toy_profile.h"

namespace weir::sim::measured_profile_test {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Returns a scenario of `model`, with the settings that the toy profile was
// measured with, on one node of DGX A100.
scenarios::ResolvedScenario Toy(int microbatch_size,
                                const std::string& parallelism = "pipeline: 4",
                                const std::string& model = "model: 'gpt2'") {
  Scenario scenario;
  const std::string text =
      absl::StrCat(model,
                   " cluster: 'dgx-a100' num_nodes: 1 schedule: '1f1b' "
                   "batch { global_batch_size: 16 } parallelism {",
                   parallelism,
                   "} "
                   "training { precision: MIXED_BF16 flash_attention: true "
                   "fp32_gradients: false }");
  EXPECT_TRUE(ParseTextProto("x", text, &scenario).ok());
  scenario.mutable_batch()->set_microbatch_size(microbatch_size);
  auto resolved = scenarios::ResolveScenario("x", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  resolved->device = ToyProfile();
  return *std::move(resolved);
}

Result Predict(const scenarios::ResolvedScenario& scenario) {
  const auto result = Simulate(scenario);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

double SumOf(const SecondsByEvidence& by) {
  return by.measured() + by.interpolated() + by.fitted() + by.datasheet() +
         by.assumed() + by.given();
}

TEST(MeasuredProfileTest, EvidenceAddsUpToTheBatch) {
  for (int microbatch_size : {1, 2, 4, 8}) {
    const Result result = Predict(Toy(microbatch_size));
    EXPECT_NEAR(SumOf(result.seconds_by_evidence()), result.batch_seconds(),
                1e-9 * result.batch_seconds());
  }
}

TEST(MeasuredProfileTest, WhatWasMeasuredIsMeasured) {
  const Result one = Predict(Toy(1));
  EXPECT_GT(one.seconds_by_evidence().measured(), 0.9 * one.batch_seconds());
  EXPECT_EQ(one.seconds_by_evidence().interpolated(), 0);
  // GEMM sizes lie between those for 1 and 4; memory-bound kernels and
  // attention were not measured.
  const Result two = Predict(Toy(2));
  EXPECT_GT(two.seconds_by_evidence().interpolated(),
            0.3 * two.batch_seconds());
  EXPECT_GT(two.seconds_by_evidence().fitted(), 0.3 * two.batch_seconds());
  const Result eight = Predict(Toy(8));
  EXPECT_EQ(eight.seconds_by_evidence().interpolated(), 0);
}

TEST(MeasuredProfileTest, ImportedLayersAreGiven) {
  Measured measured;
  measured.forward_seconds = measured.backward_seconds = {1};
  measured.activation_bytes = {0};
  const Result result = Predict(Resolve(measured, OneSwitch(1, 1e9, 0)));
  EXPECT_NEAR(result.seconds_by_evidence().given(), result.batch_seconds(),
              1e-9);
}

// A model parameter counts if the kernel time changes by at least a tenth of
// the parameter's change. The least certain such parameter determines the
// evidence of the kernel.
TEST(MeasuredProfileTest, TheWeakestFigureThatMattersDecides) {
  scenarios::ResolvedScenario scenario = Toy(1);
  scenario.runtime = Runtime();
  scenario.device.clear_kernels();
  for (const char* assumed : {"sustained_rate", "kernel_seconds"}) {
    scenario.device.mutable_gemm()->mutable_sustained_rate()->set_kind(
        std::string(assumed) == "sustained_rate" ? Figure::ASSUMED
                                                 : Figure::FITTED);
    scenario.device.mutable_kernel_seconds()->set_kind(
        std::string(assumed) == "kernel_seconds" ? Figure::ASSUMED
                                                 : Figure::FITTED);
    const Result result = Predict(scenario);
    const double part =
        result.seconds_by_evidence().assumed() / result.batch_seconds();
    EXPECT_GT(part, 0.02) << assumed;
    EXPECT_LT(part, 0.9) << assumed;
  }
}

TEST(MeasuredProfileTest, MeasuredKernelsAreMoreCertain) {
  scenarios::ResolvedScenario scenario = Toy(1);
  const double measured = Predict(scenario).uncertainty().kernels();
  scenario.device.clear_kernels();
  const double modelled = Predict(scenario).uncertainty().kernels();
  EXPECT_LT(measured, 0.02);
  EXPECT_GT(modelled, 2 * measured);
}

TEST(MeasuredProfileTest, GapsAreAPartOfTheirOwn) {
  scenarios::ResolvedScenario scenario = Toy(1);
  const Result with = Predict(scenario);
  scenario.device.clear_kernel_gap_seconds();
  const Result without = Predict(scenario);
  double gaps = 0, sum = 0;
  for (const PartSeconds& part : with.parts()) {
    if (part.name() == "kernel_gaps") gaps = part.seconds();
    sum += part.seconds();
  }
  EXPECT_GT(gaps, 0);
  EXPECT_NEAR(sum, with.batch_seconds(), 1e-9 * sum);
  for (const PartSeconds& part : without.parts()) {
    EXPECT_NE(part.name(), "kernel_gaps");
  }
}

TEST(MeasuredProfileTest, AGapBelowZeroIsNoEvidenceOfItsOwn) {
  scenarios::ResolvedScenario scenario = Toy(1);
  for (const double gap : {-1e-7, -1e-4}) {
    scenario.device.mutable_kernel_gap_seconds()->set_value(gap);
    const Result result = Predict(scenario);
    const SecondsByEvidence& by = result.seconds_by_evidence();
    EXPECT_GE(by.fitted(), 0) << gap;
    EXPECT_LE(by.measured(), result.batch_seconds() * (1 + 1e-9)) << gap;
    EXPECT_NEAR(SumOf(by), result.batch_seconds(),
                1e-9 * result.batch_seconds());
  }
}

TEST(MeasuredProfileTest, AGapBelowZeroTakesAtMostTheKernel) {
  EXPECT_EQ(GapAfter(1e-6, -3e-7), -3e-7);
  EXPECT_EQ(GapAfter(1e-6, -3e-6), -1e-6);
  EXPECT_EQ(GapAfter(1e-6, 0), 0);
}

// Checks that each GPU of a run on eight has the buffers of these communicators
// if their memory was measured, and the profile's fixed buffers otherwise.
void ExpectCommunicators(scenarios::ResolvedScenario scenario,
                         const calibrate::CommunicatorCounts& counts) {
  const auto buffers = [](const Result& result, int rank) {
    for (const MemoryClass& memory : result.ranks(rank).peak_memory_classes()) {
      if (memory.name() == "communication_buffers") return memory.bytes();
    }
    return 0.0;
  };
  CommunicatorMemory* memory =
      scenario.device.mutable_collectives()->mutable_memory();
  const Result before = Predict(scenario);
  for (Figure* figure :
       {memory->mutable_once_bytes(), memory->mutable_num_channels(),
        memory->mutable_num_pair_channels(), memory->mutable_ll_buffer_bytes(),
        memory->mutable_ll128_buffer_bytes(),
        memory->mutable_simple_buffer_bytes()}) {
    figure->set_kind(Figure::MEASURED);
  }
  const Result result = Predict(scenario);
  const double all =
      calibrate::CommunicatorBytes(scenario.device.collectives(), counts);
  for (int rank = 0; rank < 8; ++rank) {
    // All other buffers are equal.
    EXPECT_EQ(buffers(result, rank) - all,
              buffers(before, rank) -
                  scenario.device.communication_buffer_bytes().value());
  }
}

TEST(MeasuredProfileTest, CommunicatorsAreCountedWhereTheirMemoryWasMeasured) {
  // Each GPU has a tensor group, a data group, the all-reduce of the tied
  // embedding over the first and the last stage, and one pipeline neighbor.
  ExpectCommunicators(Toy(1, "pipeline: 2 data: 2 tensor: 2"),
                      {.num_in_node = 3, .num_pair_peers = 1});
}

// In an all-to-all, each GPU sends to the n - 1 other GPUs of its group.
TEST(MeasuredProfileTest, AGpuHasAllOthersOfItsExpertGroupAsPeers) {
  constexpr char kExperts[] =
      "transformer { num_layers: 4 hidden_size: 512 num_heads: 8 causal: true "
      "vocabulary_size: 32000 feed_forward_size: 1408 num_experts: 8 "
      "experts_per_token: 2 default_sequence_length: 1024 }";
  // Collectives run in two groups: all replicas, and the replicas that have the
  // same experts. If the experts are sharded across all replicas, the
  // all-to-all uses the first group, and the second has a single GPU.
  ExpectCommunicators(Toy(1, "data: 8 expert: 4", kExperts),
                      {.num_in_node = 2, .num_pair_peers = 3});
  ExpectCommunicators(Toy(1, "data: 8 expert: 8", kExperts),
                      {.num_in_node = 1, .num_pair_peers = 7});
  ExpectCommunicators(Toy(1, "pipeline: 2 data: 4 expert: 2", kExperts),
                      {.num_in_node = 2, .num_pair_peers = 2});
}

// The toy profile's links: 10 us of latency, half the rate below 1 MB, and the
// full rate above.
TEST(MeasuredProfileTest, AnUncontendedSendTakesWhatWasMeasured) {
  const double rates[] = {2e11, 2e10};
  int i = 0;
  for (const Cluster& cluster :
       {OneSwitch(2, 3e11, 1e-6), SharedNics(2, 2.5e10, 5e-6)}) {
    const double rate = rates[i++];
    for (double bytes : {4e5, 5e7}) {
      Measured measured;
      measured.num_ranks = 2;
      measured.forward_seconds = measured.backward_seconds = {1, 1};
      measured.activation_bytes = {bytes, 0};
      scenarios::ResolvedScenario scenario = Resolve(measured, cluster);
      *scenario.device.mutable_links() = ToyProfile().links();
      const double send =
          bytes < 1e6 ? 1e-5 + 2 * bytes / rate : 1e-5 + (1e6 + bytes) / rate;
      // Rounded to whole bytes on the link.
      EXPECT_NEAR(Predict(scenario).batch_seconds(), 4 + 2 * send, 1e-9);
    }
  }
}

TEST(MeasuredProfileTest, DistancesThatWereNotMeasuredAreAsBefore) {
  Measured measured;
  measured.num_ranks = 2;
  measured.forward_seconds = measured.backward_seconds = {1, 1};
  measured.activation_bytes = {1e8, 0};
  scenarios::ResolvedScenario scenario =
      Resolve(measured, SharedNics(2, 2.5e10, 5e-6));
  const double before = Predict(scenario).batch_seconds();
  *scenario.device.add_links() = ToyProfile().links(0);  // one switch
  EXPECT_EQ(Predict(scenario).batch_seconds(), before);
}

TEST(MeasuredProfileTest, KernelsThatThrottledWarn) {
  scenarios::ResolvedScenario scenario = Toy(1);
  EXPECT_THAT(Predict(scenario).warnings(),
              Not(Contains(HasSubstr("throttled"))));
  for (MeasuredKernel& kernel : *scenario.device.mutable_kernels()) {
    kernel.set_throttled(true);
  }
  EXPECT_THAT(Predict(scenario).warnings(),
              Contains("over 20 % of the time is spent on kernels that were "
                       "measured while the Toy-1 was throttled"));
}

TEST(MeasuredProfileTest, KernelsOfAnotherFormatWarn) {
  scenarios::ResolvedScenario scenario = Toy(1);
  EXPECT_THAT(Predict(scenario).warnings(),
              Not(Contains(HasSubstr("measured in"))));
  scenario.scenario.mutable_training()->set_precision(MIXED_FP16);
  EXPECT_THAT(Predict(scenario).warnings(),
              Contains("Toy-1: its GEMMs and attention were measured only in "
                       "bf16; these measurements are not used in fp16"));
}

}  // namespace weir::sim::measured_profile_test
