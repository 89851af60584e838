// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/stage_costs.h"

#include <gtest/gtest.h>

#include <utility>

#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "models/layer_work.h"
#include "models/model.h"
#include "tests/sim/measured.h"

namespace weir::sim::stage_costs_test {

constexpr double kParameters = 100, kBytesPerSecond = 1e9;

// One stage of 100 parameters on a device of 1 GB/s, whose kernels have no
// other cost.
StageCosts CostsOf(const Training& training, int num_versions) {
  Measured measured;
  measured.forward_seconds = {1};
  measured.backward_seconds = {2};
  measured.activation_bytes = {10};
  measured.parameter_bytes = {4 * kParameters};
  scenarios::ResolvedScenario resolved =
      Resolve(measured, OneSwitch(1, 1e9, 0));
  resolved.device.mutable_memory_bytes_per_second()->set_value(kBytesPerSecond);
  MatrixRate* rate = resolved.device.add_matrix_rates();
  rate->set_format("fp16");
  rate->mutable_peak_flops()->set_value(1e15);
  *resolved.scenario.mutable_training() = training;
  const auto costs = ComputeCosts(resolved, 1, {num_versions});
  EXPECT_TRUE(costs.ok()) << costs.status();
  return costs.ok() ? costs->stages[0] : StageCosts();
}

Training TrainingOf(Precision precision, Optimizer optimizer) {
  Training training;
  training.set_precision(precision);
  training.set_optimizer(optimizer);
  return training;
}

TEST(StageCostsTest, EveryCopyOfTheParameters) {
  struct Case {
    Precision precision;
    Optimizer optimizer;
    double weight, gradient, optimizer_state;
  };
  for (const Case& c :
       {Case{FP32, ADAM, 4, 4, 8}, Case{FP32, SGD_MOMENTUM, 4, 4, 4},
        Case{MIXED_FP16, ADAM, 2, 2, 12},
        Case{MIXED_FP16, SGD_MOMENTUM, 2, 2, 8}}) {
    Training training = TrainingOf(c.precision, c.optimizer);
    const StageCosts stage = CostsOf(training, 1);
    EXPECT_EQ(stage.parameters.weight_bytes, c.weight * kParameters);
    EXPECT_EQ(stage.parameters.gradient_bytes, c.gradient * kParameters);
    EXPECT_EQ(stage.parameters.optimizer_state_bytes,
              c.optimizer_state * kParameters);
    EXPECT_EQ(stage.parameters.stash_bytes, 4 * kParameters);
    training.set_fp32_gradients(true);
    training.set_stash_bytes_per_parameter(2);
    EXPECT_EQ(CostsOf(training, 1).parameters.gradient_bytes, 4 * kParameters);
    EXPECT_EQ(CostsOf(training, 1).parameters.stash_bytes, 2 * kParameters);
  }
}

// Bytes per parameter that the step reads and writes, counted by hand.
TEST(StageCostsTest, OptimizerStepMovesEveryCopyItTouches) {
  struct Case {
    Precision precision;
    Optimizer optimizer;
    double reads, writes;
  };
  for (const Case& c : {
           // Reads weight, gradient, two states; writes weight and states.
           Case{FP32, ADAM, 4 + 4 + 8, 4 + 8},
           Case{FP32, SGD_MOMENTUM, 4 + 4 + 4, 4 + 4},
           // Reads gradient, master, two states; writes master, states, 16-bit
           // weight.
           Case{MIXED_FP16, ADAM, 2 + 4 + 8, 4 + 8 + 2},
           Case{MIXED_FP16, SGD_MOMENTUM, 2 + 4 + 4, 4 + 4 + 2},
       }) {
    const Training training = TrainingOf(c.precision, c.optimizer);
    const double seconds = (c.reads + c.writes) * kParameters / kBytesPerSecond;
    EXPECT_NEAR(CostsOf(training, 1).step.seconds, seconds, 1e-9 * seconds);
    // With another version, the old one is first read and written.
    EXPECT_NEAR(CostsOf(training, 2).step.seconds,
                seconds + 8 * kParameters / kBytesPerSecond, 1e-9 * seconds);
  }
}

TEST(StageCostsTest, MeasuredLayersRunTheirForwardAgain) {
  Training training = TrainingOf(FP32, ADAM);
  EXPECT_EQ(CostsOf(training, 1).seconds.backward, 2);
  training.set_recompute(RECOMPUTE_FULL);
  const StageCosts stage = CostsOf(training, 1);
  EXPECT_EQ(stage.seconds.forward, 1);
  EXPECT_EQ(stage.seconds.backward, 1 + 2);
}

// Four blocks: their saved activations add up, and they are recomputed one at a
// time.
TEST(StageCostsTest, BlocksAddUpAndShareTheScratch) {
  Measured none;
  none.num_ranks = 0;
  scenarios::ResolvedScenario resolved = Resolve(none, OneSwitch(1, 1e9, 0));
  resolved.scenario.mutable_training()->set_recompute(RECOMPUTE_FULL);
  resolved.scenario.mutable_training()->set_dropout(true);
  resolved.scenario.mutable_training()->set_flash_attention(true);
  resolved.scenario.mutable_batch()->set_sequence_length(512);
  resolved.model = *models::LoadModel("gpt2");
  const auto costs = ComputeCosts(resolved, 3, {1, 1, 1});
  ASSERT_TRUE(costs.ok()) << costs.status();
  models::WorkSpec spec;
  spec.sequence_length = 512;
  spec.bytes_per_element = 4;
  spec.recompute = RECOMPUTE_FULL;
  spec.dropout = true;
  spec.flash_attention = true;
  const models::LayerWork block = models::LayersOf(resolved.model, spec)[1];
  const auto seconds = [&](const std::vector<models::Kernel>& kernels) {
    return calibrate::KernelSeconds(resolved.device, *costs->peak_flops,
                                    kernels);
  };
  const StageCosts& middle = costs->stages[1];
  EXPECT_EQ(middle.activations.saved_bytes, 4 * block.stash_bytes);
  EXPECT_EQ(middle.activations.recompute_scratch_bytes,
            block.recompute_scratch_bytes);
  EXPECT_EQ(middle.activations.weight_gradient_stash_bytes,
            4 * block.weight_gradient_stash_bytes);
  EXPECT_EQ(middle.parameters.weight_bytes, 4 * 4 * block.parameters);
  EXPECT_EQ(middle.communication.output_bytes, block.output_bytes);
  const double input =
      4 * (seconds(block.recompute) + seconds(block.backward_input));
  const double weight = 4 * seconds(block.backward_weight);
  EXPECT_NEAR(middle.seconds.forward, 4 * seconds(block.forward),
              1e-9 * middle.seconds.forward);
  EXPECT_NEAR(middle.seconds.backward_parts->input, input, 1e-9 * input);
  EXPECT_NEAR(middle.seconds.backward_parts->weight, weight, 1e-9 * weight);
  EXPECT_NEAR(middle.seconds.backward, input + weight, 1e-9 * (input + weight));
}

scenarios::ResolvedScenario Gpt2() {
  Measured none;
  none.num_ranks = 0;
  scenarios::ResolvedScenario resolved = Resolve(none, OneSwitch(1, 1e9, 0));
  resolved.scenario.mutable_batch()->set_sequence_length(512);
  resolved.model = *models::LoadModel("gpt2");
  return resolved;
}

// Sharded weights are copied when they are gathered, gradients when they are
// reduced: bytes at the memory's rate.
TEST(StageCostsTest, GatheredWeightsAreCopied) {
  scenarios::ResolvedScenario resolved = Gpt2();
  resolved.placement.data = 2;
  resolved.runtime.set_copies_gathered_weights(true);
  const StageCosts whole = ComputeCosts(resolved, 1, {1})->stages[0];
  resolved.scenario.mutable_training()->set_fully_sharded(true);
  resolved.runtime.set_copies_gathered_weights(false);
  const StageCosts none = ComputeCosts(resolved, 1, {1})->stages[0];
  EXPECT_EQ(none.seconds.forward, whole.seconds.forward);
  resolved.runtime.set_copies_gathered_weights(true);
  const StageCosts copied = ComputeCosts(resolved, 1, {1})->stages[0];
  const auto seconds_of = [&](double bytes) {
    models::Kernel kernel;
    kernel.launches = none.parameters.num_layers;
    kernel.bytes = bytes;
    return calibrate::KernelSeconds(resolved.device, 1, kernel);
  };
  const double weights = none.parameters.weight_bytes;
  const double gradients = none.parameters.gradient_bytes;
  EXPECT_NEAR(copied.seconds.forward,
              none.seconds.forward + seconds_of(2 * weights), 1e-12);
  EXPECT_NEAR(copied.seconds.backward,
              none.seconds.backward + seconds_of(2 * weights) +
                  seconds_of(weights + gradients),
              1e-12);
}

// The host launches the copies of every gather, shard by shard, before it
// launches the pass, except while exposed gathers run.
TEST(StageCostsTest, ListsOfShardsDelayThePass) {
  scenarios::ResolvedScenario resolved = Gpt2();
  resolved.placement.data = 5;
  resolved.scenario.mutable_training()->set_fully_sharded(true);
  resolved.runtime.set_gathers_by_matrix(true);
  const StageCosts plain = ComputeCosts(resolved, 1, {1})->stages[0];
  resolved.runtime.mutable_list_rank_seconds()->set_value(1e-4);
  const StageCosts lists = ComputeCosts(resolved, 1, {1})->stages[0];
  const double seconds = plain.parameters.num_layers * 4 * 5 * 1e-4;
  EXPECT_NEAR(lists.seconds.forward, plain.seconds.forward + seconds, 1e-12);
  EXPECT_NEAR(lists.seconds.backward, plain.seconds.backward + seconds, 1e-12);
  resolved.runtime.set_blocking_gathers(true);
  EXPECT_EQ(ComputeCosts(resolved, 1, {1})->stages[0].seconds.forward,
            plain.seconds.forward);
}

// Attention and feed-forward have two layers each; the head is no module.
TEST(StageCostsTest, ModulesDelayTheHost) {
  scenarios::ResolvedScenario resolved = Gpt2();
  resolved.runtime = {};
  resolved.runtime.mutable_module_seconds()->set_value(1e-3);
  const StageLaunches plain =
      ComputeCosts(resolved, 1, {1})->stages[0].launches;
  const double blocks = resolved.model.transformer().num_layers();
  EXPECT_EQ(plain.forward.modules, 4 * blocks);
  EXPECT_EQ(plain.backward_input.modules, 4 * blocks);
  EXPECT_EQ(plain.backward_weight.modules, 0);
  EXPECT_DOUBLE_EQ(plain.forward_seconds, 4e-3 * blocks);
  resolved.scenario.mutable_training()->set_recompute(RECOMPUTE_FULL);
  const StageLaunches full = ComputeCosts(resolved, 1, {1})->stages[0].launches;
  EXPECT_EQ(full.backward_input.modules, 8 * blocks);
}

// A host that waits for each kernel adds its launches to the pass.
TEST(StageCostsTest, BlockingLaunchesAddUp) {
  scenarios::ResolvedScenario resolved = Gpt2();
  resolved.runtime.mutable_forward_launch_seconds()->set_value(1e-5);
  resolved.runtime.mutable_backward_launch_seconds()->set_value(2e-5);
  const StageCosts ahead = ComputeCosts(resolved, 1, {1})->stages[0];
  resolved.runtime.set_blocking_launches(true);
  const StageCosts blocking = ComputeCosts(resolved, 1, {1})->stages[0];
  ASSERT_GT(ahead.launches.forward_seconds, 0);
  EXPECT_NEAR(blocking.seconds.forward,
              ahead.seconds.forward + ahead.launches.forward_seconds, 1e-12);
  EXPECT_NEAR(blocking.seconds.backward,
              ahead.seconds.backward + ahead.launches.backward_input_seconds +
                  ahead.launches.backward_weight_seconds,
              1e-12);
}

// The larger of both numbers of elements, unless the scenario sets bytes.
TEST(StageCostsTest, BucketsGrowWithTheReplicas) {
  scenarios::ResolvedScenario resolved = Gpt2();
  resolved.scenario.mutable_training()->set_precision(MIXED_BF16);
  resolved.device = *calibrate::LoadDeviceProfile("a100-sxm-80gb");
  EXPECT_EQ(ComputeCosts(resolved, 1, {1})->bucket_bytes, 25 << 20);
  resolved.runtime.set_bucket_elements(100);
  resolved.runtime.set_bucket_elements_per_replica(30);
  for (const auto& [data, elements] : {std::pair(2, 100), std::pair(8, 240)}) {
    resolved.placement.data = data;
    resolved.scenario.mutable_training()->set_fp32_gradients(false);
    EXPECT_EQ(ComputeCosts(resolved, 1, {1})->bucket_bytes, 2 * elements);
    resolved.scenario.mutable_training()->set_fp32_gradients(true);
    EXPECT_EQ(ComputeCosts(resolved, 1, {1})->bucket_bytes, 4 * elements);
  }
  resolved.scenario.mutable_communication()->set_bucket_bytes(7);
  EXPECT_EQ(ComputeCosts(resolved, 1, {1})->bucket_bytes, 7);
}

// Memory of a pass in addition to all saved activations of the stage: the
// maximum over its layers of the layer's scratch, less the activations that
// later layers have not saved yet; at least 0.
TEST(StageCostsTest, ScratchIsThatOfTheWorstLayer) {
  for (const RecomputeMode mode :
       {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL}) {
    Measured none;
    none.num_ranks = 0;
    scenarios::ResolvedScenario resolved = Resolve(none, OneSwitch(1, 1e9, 0));
    resolved.scenario.mutable_training()->set_recompute(mode);
    resolved.scenario.mutable_batch()->set_sequence_length(512);
    resolved.model = *models::LoadModel("gpt2");
    const auto costs = ComputeCosts(resolved, 2, {1, 1});
    ASSERT_TRUE(costs.ok()) << costs.status();
    models::WorkSpec spec;
    spec.sequence_length = 512;
    spec.bytes_per_element = spec.gradient_bytes = 4;
    spec.fused_cross_entropy = true;  // unless a runtime differs
    spec.recompute = mode == RECOMPUTE_FULL        ? RECOMPUTE_FULL
                     : mode == RECOMPUTE_SELECTIVE ? RECOMPUTE_SELECTIVE
                                                   : RECOMPUTE_NONE;
    const std::vector<models::LayerWork> layers =
        models::LayersOf(resolved.model, spec);
    const int cuts[] = {0, 7, 14};  // embedding and 6 blocks, 6 and the head
    for (int s : {0, 1}) {
      double forward = 0, backward = 0, later = 0;
      for (int l = cuts[s + 1] - 1; l >= cuts[s]; --l) {
        forward = std::max(forward, layers[l].forward_scratch_bytes - later);
        backward =
            std::max(backward, layers[l].recompute_scratch_bytes +
                                   layers[l].backward_scratch_bytes - later);
        later += layers[l].stash_bytes;
      }
      const StageCosts& stage = costs->stages[s];
      EXPECT_EQ(stage.activations.forward_scratch_bytes, forward);
      EXPECT_EQ(stage.activations.recompute_scratch_bytes +
                    stage.activations.backward_scratch_bytes,
                backward);
      EXPECT_GE(stage.activations.backward_scratch_bytes, 0);
    }
  }
}

// Embedding, blocks, norm and head individually, for gathered shards.
TEST(StageCostsTest, LayersOfAStageHaveTheirSizes) {
  Measured none;
  none.num_ranks = 0;
  scenarios::ResolvedScenario resolved = Resolve(none, OneSwitch(1, 1e9, 0));
  resolved.scenario.mutable_batch()->set_sequence_length(512);
  resolved.model = *models::LoadModel("llama-2-7b");
  const auto costs = ComputeCosts(resolved, 2, {1, 1});
  ASSERT_TRUE(costs.ok()) << costs.status();
  const double vocabulary = 4.0 * 32000 * 4096;
  const StageCosts &first = costs->stages[0], &last = costs->stages[1];
  EXPECT_EQ(first.parameters.num_layers, 17);
  EXPECT_EQ(first.parameters.first_gathered_bytes(/*forward=*/true),
            vocabulary);
  const double block = first.parameters.first_gathered_bytes(/*forward=*/false);
  EXPECT_EQ(first.parameters.weight_bytes, vocabulary + 16 * block);
  EXPECT_EQ(first.parameters.most_gathered_bytes(),
            std::max(vocabulary, block) + block);
  EXPECT_EQ(last.parameters.num_layers, 17);
  EXPECT_EQ(last.parameters.first_gathered_bytes(/*forward=*/true), block);
  EXPECT_EQ(last.parameters.first_gathered_bytes(/*forward=*/false),
            vocabulary + 4 * 4096);
}

TEST(StageCostsTest, StagesHaveTheirOwnGivenCosts) {
  scenarios::ResolvedScenario resolved;
  resolved.label = "test";
  resolved.given_costs = true;
  GivenCosts* given = resolved.scenario.mutable_costs();
  for (double seconds : {1.0, 2.0}) {
    auto* stage = given->add_stages();
    stage->set_forward_seconds(seconds);
    stage->set_backward_input_seconds(10 * seconds);
    stage->set_backward_weight_seconds(100 * seconds);
  }
  const auto costs = ComputeCosts(resolved, 2, {1, 1});
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_EQ(costs->stages[1].seconds.Of(schedules::Op::kForward), 2);
  EXPECT_EQ(costs->stages[1].seconds.Of(schedules::Op::kBackward), 220);
  EXPECT_EQ(costs->stages[1].seconds.Of(schedules::Op::kBackwardInput), 20);
  EXPECT_EQ(costs->stages[1].seconds.Of(schedules::Op::kBackwardWeight), 200);
  EXPECT_FALSE(ComputeCosts(resolved, 3, {1, 1, 1}).ok());
}

}  // namespace weir::sim::stage_costs_test
