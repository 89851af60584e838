// SPDX-License-Identifier: Apache-2.0
// Compares MegatronObstacles with the rules of Megatron-LM itself.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "plan/frameworks/megatron_arguments.h"
#include "scenarios/scenario.h"
#include "tests/plan/frameworks/megatron_rules.h"

namespace weir::plan::megatron_random_test {

constexpr uint32_t kNumScenarios = 4000;
constexpr uint32_t kNumGpus = 8;

template <typename T>
T OneOf(const std::vector<T>& values, std::mt19937* random) {
  return values[(*random)() % values.size()];
}

void SetModel(std::mt19937* random, Transformer* model) {
  const auto flip = [random] { return (*random)() % 2 == 0; };
  model->set_num_layers(OneOf<uint32_t>({6, 7, 8, 12}, random));
  model->set_hidden_size(128);
  model->set_num_heads(8);
  model->set_num_kv_heads(OneOf<uint32_t>({1, 2, 3, 8}, random));
  model->set_vocabulary_size(512);
  model->set_causal(true);
  model->set_gated_feed_forward(flip());
  model->set_rms_norm(flip());
  model->set_tied_embeddings(flip());
  if (flip()) {
    model->set_num_positions(64);
  } else {
    model->set_default_sequence_length(64);
  }
  if (flip()) {
    model->set_attention_bias(true);
    const bool all = flip();
    model->set_attention_output_bias(all);
    model->set_feed_forward_bias(all);
  }
  if ((*random)() % 3 == 0) {
    model->set_num_experts(4);
    model->set_experts_per_token(2);
    model->set_num_dense_blocks((*random)() % 3);
    if (flip()) model->set_num_shared_experts(1);
    if (flip()) model->set_capacity_factor(1.5);
  }
}

void SetLayout(std::mt19937* random, Scenario* scenario) {
  const auto flip = [random] { return (*random)() % 2 == 0; };
  Parallelism& parallelism = *scenario->mutable_parallelism();
  parallelism.set_tensor(OneOf<uint32_t>({1, 1, 2}, random));
  parallelism.set_pipeline(OneOf<uint32_t>({1, 1, 2, 4}, random));
  parallelism.set_data(kNumGpus / parallelism.tensor() /
                       parallelism.pipeline());
  if (scenario->transformer().num_experts() > 0) {
    parallelism.set_expert(OneOf<uint32_t>({1, 2, 4}, random));
  }
  parallelism.set_sequence_parallel(flip());
  parallelism.set_order(OneOf<std::string>({"tp-dp-pp", "tp-pp-dp"}, random));
  parallelism.set_chunks(OneOf<uint32_t>({1, 1, 2, 3}, random));
  scenario->set_schedule(parallelism.chunks() > 1 ? "interleaved-1f1b"
                                                  : "1f1b");
  const uint32_t num_stages = parallelism.pipeline() * parallelism.chunks();
  const uint32_t num_layers = scenario->transformer().num_layers();
  if (num_stages > 1 && num_layers >= num_stages && flip()) {
    for (uint32_t s = 0; s + 1 < num_stages; ++s) {
      parallelism.add_blocks_per_stage(1);
    }
    parallelism.add_blocks_per_stage(num_layers - num_stages + 1);
  }
}

// Draws options for which Megatron-LM has arguments. Not all are legal.
Scenario RandomScenario(uint32_t seed) {
  std::mt19937 random(seed);
  const auto one_in = [&random](uint32_t n) { return random() % n == 0; };
  Scenario scenario;
  SetModel(&random, scenario.mutable_transformer());
  SetLayout(&random, &scenario);
  scenario.set_cluster("dgx-a100");
  scenario.set_num_nodes(1);
  Batch& batch = *scenario.mutable_batch();
  batch.set_microbatch_size(1 + random() % 2);
  batch.set_global_batch_size(64);
  batch.set_sequence_length(64);
  Training& training = *scenario.mutable_training();
  training.set_precision(
      OneOf<Precision>({MIXED_BF16, MIXED_BF16, MIXED_FP16, FP32}, &random));
  training.set_flash_attention(one_in(2));
  if (one_in(4)) training.set_fp32_gradients(one_in(2));
  training.set_recompute(OneOf<RecomputeMode>(
      {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL}, &random));
  training.set_distributed_optimizer(one_in(3));
  training.set_fully_sharded(one_in(3));
  if (one_in(3)) training.set_optimizer(SGD_MOMENTUM);
  Communication& communication = *scenario.mutable_communication();
  communication.set_transfers(one_in(3) ? BLOCKING : OVERLAPPED);
  if (one_in(3)) communication.set_gradient_reduction(REDUCTION_OVERLAPPED);
  return scenario;
}

TEST(MegatronRandomTest, ObstaclesAreWhatMegatronRefuses) {
  std::map<std::string, int> refused;  // number of scenarios refused, by rule
  int num_run = 0;
  for (uint32_t seed = 0; seed < kNumScenarios; ++seed) {
    const Scenario scenario = RandomScenario(seed);
    const auto resolved = scenarios::ResolveScenario("test", scenario);
    if (!resolved.ok()) continue;
    const std::string args = MegatronArguments(*resolved);
    const std::vector<std::string> refusals =
        MegatronRefusals(ParseMegatronArgs(args), kNumGpus);
    const std::vector<std::string> obstacles = MegatronObstacles(*resolved);
    ASSERT_EQ(obstacles.empty(), refusals.empty())
        << "obstacles: " << absl::StrJoin(obstacles, "; ")
        << "\nMegatron-LM: " << absl::StrJoin(refusals, "; ") << "\n"
        << scenario.DebugString() << args;
    for (const std::string& rule : refusals) ++refused[rule];
    num_run += refusals.empty() ? 1 : 0;
  }
  EXPECT_GT(num_run, 100);
  for (const char* rule :
       {"interleaving needs 2 ranks, 3 without overlap",
        "FSDP2 goes with none of these", "the distributed optimizer is Adam",
        "FlashAttention takes 16 bits", "no fp16 with expert parallelism"}) {
    EXPECT_GT(refused[rule], 0) << rule;
  }
}

}  // namespace weir::plan::megatron_random_test
