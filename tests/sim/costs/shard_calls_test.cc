// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/shard_calls.h"

#include <gtest/gtest.h>

#include "calibrate/profile/runtime.h"
#include "tests/sim/measured.h"

namespace weir::sim::shard_calls_test {

// A block of GPT with `hidden` units: 12 hidden^2 elements in four matrices.
Transformer Gpt(uint32_t hidden) {
  Transformer gpt;
  gpt.set_hidden_size(hidden);
  gpt.set_num_heads(hidden / 128);
  gpt.set_num_kv_heads(hidden / 128);
  gpt.set_head_size(128);
  gpt.set_feed_forward_size(4 * hidden);
  gpt.set_attention_bias(true);
  gpt.set_attention_output_bias(true);
  gpt.set_feed_forward_bias(true);
  return gpt;
}

void ExpectGathers(const PassGathers& found, const PassGathers& expected) {
  EXPECT_NEAR(found.calls, expected.calls, 1e-12);
  EXPECT_NEAR(found.bytes, expected.bytes, 1e-12);
  EXPECT_NEAR(found.exposed_calls, expected.exposed_calls, 1e-12);
  EXPECT_NEAR(found.exposed_bytes, expected.exposed_bytes, 1e-12);
}

TEST(ShardCallsTest, BlocksAreGatheredOnceAndAhead) {
  const ShardCalls calls = ShardCallsOf(Gpt(1024), {}, true, 1, 8);
  ExpectGathers(calls.forward, {1, 1, 0, 0});
  ExpectGathers(calls.backward, {1, 1, 0, 0});
  EXPECT_EQ(calls.reductions, 1);
  EXPECT_EQ(calls.small_reductions, 0);
  EXPECT_EQ(calls.list_seconds, 0);
  EXPECT_FALSE(calls.blocking_reductions);
}

TEST(ShardCallsTest, BlockingGathersAreExposed) {
  Runtime runtime;
  runtime.set_blocking_gathers(true);
  runtime.set_gathers_by_matrix(true);
  const ShardCalls calls = ShardCallsOf(Gpt(1024), runtime, true, 1, 8);
  ExpectGathers(calls.forward, {4, 1, 4, 1});
  ExpectGathers(calls.backward, {4, 1, 4, 1});
  Transformer gated = Gpt(1024);
  gated.set_gated_feed_forward(true);
  EXPECT_EQ(ShardCallsOf(gated, runtime, true, 1, 8).forward.calls, 5);
}

// Matrices of 3, 1, 4 and 4 hidden^2 elements. The repeated forward ends with
// the matrix with which the backward begins.
TEST(ShardCallsTest, RecomputedBlocksAreGatheredAgain) {
  Runtime runtime;
  runtime.set_gathers_by_matrix(true);
  runtime.set_regathers_weights(true);
  ExpectGathers(ShardCallsOf(Gpt(1024), runtime, true, 1, 8).backward,
                {7, 20 / 12.0, 0, 0});
  ExpectGathers(ShardCallsOf(Gpt(1024), runtime, false, 1, 8).backward,
                {4, 1, 0, 0});
}

// With at most 2 hidden^2 gathered elements, only the matrix after the one of
// hidden^2 elements is gathered ahead: in the forward pass the first
// feed-forward matrix, in the backward pass queries, keys and values.
TEST(ShardCallsTest, LargeMatricesAreNotGatheredAhead) {
  Runtime runtime;
  runtime.set_gathers_by_matrix(true);
  runtime.set_regathers_weights(true);
  runtime.set_max_gathered_elements(2.0 * 1024 * 1024);
  const ShardCalls calls = ShardCallsOf(Gpt(1024), runtime, true, 1, 8);
  ExpectGathers(calls.forward, {4, 1, 3, 8 / 12.0});
  ExpectGathers(calls.backward, {7, 20 / 12.0, 5, 13 / 12.0});
  // Halves of 1.5, 0.5, 2 and 2: only those of the feed-forward layer are too
  // large, so that its second and the next block's first are exposed.
  ExpectGathers(ShardCallsOf(Gpt(1024), runtime, true, 2, 8).forward,
                {4, 1, 2, 7 / 12.0});
}

// 4 matrices, 4 biases of 3, 1, 4 and 1 hidden elements, 2 norms with weight
// and bias.
TEST(ShardCallsTest, TensorsAreReducedOneByOne) {
  Runtime runtime;
  runtime.set_reduces_by_tensor(true);
  runtime.set_blocking_reductions(true);
  runtime.mutable_list_rank_seconds()->set_value(1e-5);
  const ShardCalls calls = ShardCallsOf(Gpt(1024), runtime, true, 1, 8);
  EXPECT_EQ(calls.reductions, 4);
  EXPECT_EQ(calls.small_reductions, 8);
  EXPECT_NEAR(calls.small_part, 13 / (13 + 12 * 1024.0), 1e-12);
  EXPECT_NEAR(calls.list_seconds, 8e-5, 1e-18);
  EXPECT_TRUE(calls.blocking_reductions);
}

TEST(ShardCallsTest, MatricesOfABlock) {
  Transformer gated = Gpt(1024);
  EXPECT_EQ(MatricesPerBlock(gated), 4);
  gated.set_gated_feed_forward(true);
  EXPECT_EQ(MatricesPerBlock(gated), 5);
}

// DeepSpeed's preset on GPT-3 175B, whose matrices are smaller than 1e9
// elements, and on 530B, most of whose are not.
TEST(ShardCallsTest, DeepSpeedOf2021) {
  const Runtime runtime = *calibrate::LoadRuntime("deepspeed-zero3-2021");
  const ShardCalls small = ShardCallsOf(Gpt(12288), runtime, true, 1, 1536);
  ExpectGathers(small.forward, {4, 1, 0, 0});
  ExpectGathers(small.backward, {7, 20 / 12.0, 0, 0});
  EXPECT_EQ(small.reductions + small.small_reductions, 12);
  EXPECT_NEAR(small.list_seconds, 1536 * runtime.list_rank_seconds().value(),
              1e-12);
  const ShardCalls large = ShardCallsOf(Gpt(20480), runtime, true, 1, 2240);
  ExpectGathers(large.forward, {4, 1, 3, 8 / 12.0});
  ExpectGathers(large.backward, {7, 20 / 12.0, 5, 13 / 12.0});
}

}  // namespace weir::sim::shard_calls_test
