// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/two_bw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "plan/papers/planner_work.h"
#include "scenarios/scenario.h"

namespace weir::plan::two_bw_test {

using testing::HasSubstr;

PlannerWork Blocks(int num_blocks, int microbatch_size) {
  PlannerWork work;
  work.microbatch_size = microbatch_size;
  PlannerLayer block;
  block.forward_seconds = 1.0 * microbatch_size;
  block.backward_seconds = 2.0 * microbatch_size;
  block.output_bytes = 10.0 * microbatch_size;
  block.activation_bytes = 100.0 * microbatch_size;
  block.input_bytes = 10.0 * microbatch_size;
  block.gradient_bytes = 50;
  block.version_bytes = 100;
  block.state_bytes = 400;
  work.layers.assign(num_blocks, block);
  return work;
}

TwoBwProblem Question() {
  TwoBwProblem question;
  question.works = {Blocks(8, 1), Blocks(8, 2)};
  question.num_devices = 8;
  question.devices_per_server = 4;
  question.server_bytes_per_second = 100;
  question.servers_bytes_per_second = 10;
  question.memory_bytes = 1e9;
  question.global_batch_size = 64;
  return question;
}

// Checks the formulas of the header for equal blocks, each written out again.
TEST(TwoBwTest, CostsAreThePapersForEqualBlocks) {
  const TwoBwProblem question = Question();
  const PlannerWork& work = question.works[0];
  // Width 2 in a server, depth 4 across servers; 2 blocks per stage, m = 32.
  const double compute = 2 * 3, inner = 2 * 20 / 10.0, outer = 2 * 10 / 10.0;
  EXPECT_DOUBLE_EQ(TwoBwMicrobatchSeconds(question, work, 2, 4, 32,
                                          TwoBwExecution::kPipelined),
                   compute + inner);
  EXPECT_DOUBLE_EQ(TwoBwMicrobatchSeconds(question, work, 2, 4, 32,
                                          TwoBwExecution::kRecomputed),
                   compute * 4 / 3 + inner);
  EXPECT_DOUBLE_EQ(TwoBwMicrobatchSeconds(question, work, 2, 4, 32,
                                          TwoBwExecution::kNotPipelined),
                   4 * compute + 2 * inner + 2 * outer);
  // Data parallelism over both servers: reductions of 2 x 7/8 x 400 bytes at
  // the lower rate, divided by m microbatches.
  EXPECT_DOUBLE_EQ(TwoBwMicrobatchSeconds(question, work, 8, 1, 1,
                                          TwoBwExecution::kPipelined),
                   2 * 7 / 8.0 * 400 / 10);
  EXPECT_DOUBLE_EQ(TwoBwMicrobatchSeconds(question, work, 8, 1, 8,
                                          TwoBwExecution::kPipelined),
                   24);
}

TEST(TwoBwTest, MemoryIsThePapersForEqualBlocks) {
  const PlannerWork work = Blocks(8, 1);
  const double activations = 2 * 100, inputs = 2 * 10, states = 2 * 400,
               version = 2 * 100;
  EXPECT_DOUBLE_EQ(TwoBwMemoryBytes(work, 4, TwoBwExecution::kPipelined),
                   states + version + 4 * activations + 4 * inputs);
  EXPECT_DOUBLE_EQ(TwoBwMemoryBytes(work, 4, TwoBwExecution::kRecomputed),
                   states + version + activations + 4 * inputs);
  EXPECT_DOUBLE_EQ(TwoBwMemoryBytes(work, 4, TwoBwExecution::kNotPipelined),
                   states + activations);
}

// Tries every width and depth that divide, with the costs from the formulas.
TEST(TwoBwTest, EqualsBruteForceOnTablesOfCosts) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> any(0.2, 5);
  int num_found = 0;
  for (int i = 0; i < 200; ++i) {
    TwoBwProblem question = Question();
    for (PlannerWork& work : question.works) {
      for (PlannerLayer& layer : work.layers) {
        layer.forward_seconds *= any(random);
        layer.backward_seconds *= any(random);
        layer.output_bytes *= any(random);
        layer.activation_bytes *= any(random);
        layer.gradient_bytes *= 10 * any(random);
        layer.state_bytes *= any(random);
      }
    }
    question.memory_bytes = 2000 * any(random);
    double best = 0;
    for (int width : {1, 2, 4, 8}) {
      for (int depth : {1, 2, 4, 8}) {
        if (width * depth > 8) continue;
        for (const PlannerWork& work : question.works) {
          const int m = 64 / (width * work.microbatch_size);
          if (m % depth != 0) continue;
          for (int execution = 0; execution < 3; ++execution) {
            const int size = 8 / depth;
            double slowest = 0, sum = 0, memory = 0;
            for (int s = 0; s < depth; ++s) {
              double compute = 0, reduced = 0, activations = 0, states = 0,
                     versions = 0, inputs = 0, sent = 0;
              for (int l = s * size; l < (s + 1) * size; ++l) {
                const PlannerLayer& layer = work.layers[l];
                compute += layer.forward_seconds + layer.backward_seconds;
                reduced += layer.gradient_bytes;
                activations += layer.activation_bytes;
                states += layer.state_bytes;
                versions += layer.version_bytes;
                inputs += layer.input_bytes;
              }
              if (s > 0) sent += work.layers[s * size - 1].output_bytes;
              if (s < depth - 1) {
                sent += work.layers[(s + 1) * size - 1].output_bytes;
              }
              if (execution == 2) compute *= 4.0 / 3;
              const double seconds =
                  std::max(compute + 2 * sent / (depth < 4 ? 100 : 10),
                           2.0 * (width - 1) / width * reduced /
                               (width < 4 ? 100 : 10) / m);
              slowest = std::max(slowest, seconds);
              sum += seconds;
              memory = std::max(
                  memory, execution == 0
                              ? states + activations
                              : states + versions + depth * inputs +
                                    (execution == 1 ? depth : 1) * activations);
            }
            if (memory > question.memory_bytes) continue;
            best = std::max(best, width * work.microbatch_size /
                                      (execution == 0 ? sum : slowest));
          }
        }
      }
    }
    const auto plan = SearchTwoBw(question);
    ASSERT_EQ(plan.ok(), best > 0) << plan.status();
    if (!plan.ok()) continue;
    ++num_found;
    EXPECT_NEAR(plan->samples_per_second, best, 1e-9 * best);
    EXPECT_LE(plan->memory_bytes, question.memory_bytes);
    EXPECT_EQ(plan->num_microbatches % plan->depth, 0);
    EXPECT_EQ(
        Coalesced(*plan) * plan->width * plan->depth * plan->microbatch_size,
        64);
  }
  EXPECT_GT(num_found, 100);
}

TEST(TwoBwTest, SaysWhatTheSmallestPlanNeeds) {
  TwoBwProblem question = Question();
  question.memory_bytes = 100;
  EXPECT_EQ(SearchTwoBw(question).status().message(),
            "2bw: nothing fits 100 B: the smallest plan needs 500 B");
}

// Figure 6 and section 5: GPT-2.2B on 8 p3.16xlarge is pipelined across all
// servers at a batch size of 512.
TEST(TwoBwTest, PlansThePapersModelWithinItsMemory) {
  const auto scenario = scenarios::LoadScenario("pipedream-2bw-gpt-2.2b");
  ASSERT_TRUE(scenario.ok());
  const auto given = scenarios::ResolveScenario("given", *scenario);
  ASSERT_TRUE(given.ok()) << given.status();
  const auto plan = PlanTwoBw(*given, PlannerLinksOf(*given));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->schedule, "pipedream-2bw");
  int num_devices = 0;
  for (const PlannedStage& stage : plan->stages) {
    num_devices += static_cast<int>(stage.devices.size());
  }
  EXPECT_EQ(num_devices, 64);
  const auto planned = ScenarioOf(*plan, *given);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_TRUE(scenarios::ResolveScenario("planned", *planned).ok());
}

// A model of an embedding and a head without a block is refused; one block is
// enough.
TEST(TwoBwTest, AsksForABlock) {
  TwoBwProblem question = Question();
  question.works = {Blocks(3, 1)};
  question.num_devices = 1;
  std::vector<PlannerLayer>& layers = question.works[0].layers;
  layers.front().is_block = layers.back().is_block = false;
  EXPECT_TRUE(SearchTwoBw(question).ok()) << SearchTwoBw(question).status();
  layers[1].is_block = false;
  EXPECT_THAT(
      std::string(SearchTwoBw(question).status().message()),
      HasSubstr("works[0].layers have no block, expected at least one"));
}

}  // namespace weir::plan::two_bw_test
