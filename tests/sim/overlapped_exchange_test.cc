// SPDX-License-Identifier: Apache-2.0
// Exchanges of experts that overlap with the kernels of another microbatch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "sim/bounds/bound.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"
#include "tests/sim/methods_agree.h"

namespace weir::sim::overlapped_exchange_test {

using testing::HasSubstr;

// On two GPUs with four experts each. The model parameters of `runtime: "none"`
// have no host time.
std::string Text(absl::string_view parallelism, absl::string_view schedule,
                 absl::string_view communication, int width = 1024) {
  return absl::StrCat(
      R"pb(cluster: "dgx-h100"
           runtime: "none"
           batch {
             microbatch_size: 1
             global_batch_size: 32
             sequence_length: 1024
           }
           transformer { num_layers: 8 hidden_size: 1024 num_heads: 8
                         vocabulary_size: 8192
                         causal: true
                         num_experts: 16
                         experts_per_token: 4
                         feed_forward_size:)pb",
      width, " expert_feed_forward_size: ", width, "} schedule: \"", schedule,
      "\" parallelism {", parallelism, "} communication {", communication, "}");
}

absl::StatusOr<scenarios::ResolvedScenario> Resolve(const std::string& text) {
  Scenario scenario;
  RETURN_IF_ERROR(ParseTextProto("test", text, &scenario));
  return scenarios::ResolveScenario("test", scenario);
}

Result Simulated(const std::string& text) {
  const auto resolved = Resolve(text);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  if (!resolved.ok()) return {};
  const auto result = Simulate(*resolved);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

constexpr char kOneStage[] = "data: 8 expert: 8";
constexpr char kOverlap[] = " overlap_expert_exchange: true";
constexpr char kDeepEp[] =
    "token_dispatcher: TOKENS_DEEPEP "
    "dispatch_multiprocessors: 24";

// Kernels and exchanges of one microbatch, forward and backward.
struct Microbatch {
  double kernels = 0, exchanges = 0;
};

// Simulates on a device whose kernels flows do not slow down.
Result WithoutSlowdown(const std::string& text) {
  auto resolved = Resolve(text);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  if (!resolved.ok()) return {};
  resolved->device.mutable_collective_slowdown()->set_value(1);
  const auto result = Simulate(*resolved);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Result();
}

// Expects that a step of m microbatches on one pipeline rank, whose passes have
// kernels of k seconds and exchanges of x seconds, is shorter by
//   (m - 1) (k + x - max(k + s x, x))
// with pairs than without: all but the first forward and the last backward are
// in pairs. s is the part of the multiprocessors that exchanges take. Returns k
// and x.
Microbatch ExpectPairs(const char* parallelism, int num_microbatches,
                       const std::string& communication, int width,
                       double share) {
  const Result alone =
      WithoutSlowdown(Text(parallelism, "1f1b", communication, width));
  const Result pairs = WithoutSlowdown(
      Text(parallelism, "1f1b", absl::StrCat(communication, kOverlap), width));
  const double x =
      alone.breakdown().expert_communication_seconds() / num_microbatches;
  const double k = alone.breakdown().compute_seconds() / num_microbatches;
  EXPECT_GT(x, 0);
  const double hidden = k + x - std::max(k + share * x, x);
  const double expected =
      alone.batch_seconds() - (num_microbatches - 1) * hidden;
  EXPECT_NEAR(pairs.batch_seconds(), expected, 2e-9 * expected);
  // What the kernels do not hide.
  const double exposed = x + (num_microbatches - 1) * std::max(x - k, 0.0);
  if (share == 0) {
    EXPECT_NEAR(pairs.breakdown().expert_communication_seconds(), exposed,
                2e-9 * expected);
  }
  return {k, x};
}

TEST(OverlappedExchangeTest, PairsTakeTheLongerOfKernelsAndExchanges) {
  const Microbatch in_a_node = ExpectPairs(kOneStage, 4, "", 4096, 0);
  EXPECT_GT(in_a_node.kernels, in_a_node.exchanges);
  const Microbatch across = ExpectPairs("data: 16 expert: 16", 2, "", 64, 0);
  EXPECT_LT(across.kernels, across.exchanges);
}

// Flows slow kernels down as in any other pass.
TEST(OverlappedExchangeTest, KernelsAreSlowerWhileTokensMove) {
  const std::string text = Text(kOneStage, "1f1b", kOverlap, 4096);
  EXPECT_GT(Simulated(text).batch_seconds(),
            WithoutSlowdown(text).batch_seconds());
}

// DeepEP's kernels take 24 of 132 multiprocessors from the others.
TEST(OverlappedExchangeTest, KernelsLoseMultiprocessorsOfDeepEp) {
  ExpectPairs(kOneStage, 4, kDeepEp, 4096, 24.0 / 132);
}

// Schedules without a forward after a backward are as before.
TEST(OverlappedExchangeTest, GPipeHasNoPairs) {
  const std::string pipeline = "data: 4 pipeline: 4 expert: 4";
  EXPECT_EQ(Simulated(Text(pipeline, "gpipe", "")).batch_seconds(),
            Simulated(Text(pipeline, "gpipe", kOverlap)).batch_seconds());
}

TEST(OverlappedExchangeTest, NeedsExpertParallelism) {
  EXPECT_THAT(
      std::string(
          Resolve(Text("data: 8", "1f1b", kOverlap)).status().message()),
      HasSubstr("communication.overlap_expert_exchange is true and "
                "parallelism.expert is 1, expected at least 2"));
}

// One simulator tells dispatchers apart.
TEST(OverlappedExchangeTest, FastSimulatorKeepsPricesOfEachDispatcher) {
  FastSimulator simulator;
  for (const char* communication : {"", kDeepEp, kOverlap}) {
    const auto resolved = Resolve(Text(kOneStage, "1f1b", communication));
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const auto one = simulator.Estimate(*resolved);
    const auto other = FastSimulator().Estimate(*resolved);
    ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
    EXPECT_EQ(one->batch_seconds, other->batch_seconds) << communication;
  }
}

class OverlappedAgreementTest
    : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(OverlappedAgreementTest, FastEqualsFullAndBoundsHold) {
  const auto& [parallelism, communication] = GetParam();
  const bool chunks =
      absl::string_view(parallelism).find("chunks") != absl::string_view::npos;
  const auto resolved = Resolve(
      Text(parallelism, chunks ? "interleaved-1f1b" : "1f1b", communication));
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto full = Simulate(*resolved);
  const auto fast = FastSimulator().Estimate(*resolved);
  const auto bound = BoundOf(*resolved);
  ASSERT_TRUE(full.ok() && fast.ok() && bound.ok())
      << full.status() << fast.status() << bound.status();
  ExpectMethodsAgree(*full, *fast, bound->batch_seconds);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, OverlappedAgreementTest,
    testing::Combine(
        testing::Values("data: 8 expert: 8", "data: 16 expert: 16",
                        "data: 4 pipeline: 4 expert: 4",
                        "data: 8 pipeline: 2 chunks: 4 expert: 8",
                        "tensor: 2 data: 4 pipeline: 2 expert: 8 "
                        "expert_tensor: 1 sequence_parallel: true",
                        "tensor: 2 data: 4 pipeline: 2 chunks: 2 expert: 2 "
                        "sequence_parallel: true",
                        "data: 2 context: 4 pipeline: 2 expert: 8"),
        testing::Values("overlap_expert_exchange: true",
                        "overlap_expert_exchange: true "
                        "gradient_reduction: REDUCTION_OVERLAPPED",
                        "overlap_expert_exchange: true "
                        "token_dispatcher: TOKENS_DEEPEP",
                        "overlap_expert_exchange: true "
                        "token_dispatcher: TOKENS_HYBRID_EP")));

}  // namespace weir::sim::overlapped_exchange_test
