// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/frameworks/same_run.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "models/layout.h"
#include "plan/frameworks/imported_run.h"
#include "plan/frameworks/option_table.h"
#include "plan/frameworks/torchtitan_stages.h"
#include "scenarios/cuda_graphs.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/registry.h"
#include "schedules/source.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

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
    if (flip()) {
      model->set_capacity_factor(1.5);
      model->set_unpadded_capacity(flip());
    }
    if (flip()) {
      model->set_num_router_groups(2);
      model->set_router_groups_per_token(1);
    }
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

// Lets replicas share sequences.
void SetContext(std::mt19937* random, Scenario* scenario) {
  Parallelism& parallelism = *scenario->mutable_parallelism();
  const uint32_t size = OneOf<uint32_t>({2, 2, 4}, random);
  if (parallelism.data() % size != 0) return;
  parallelism.set_data(parallelism.data() / size);
  parallelism.set_context(size);
  parallelism.set_context_method(OneOf<ContextMethod>(
      {CONTEXT_P2P, CONTEXT_ALL_GATHER, CONTEXT_A2A, CONTEXT_A2A_P2P}, random));
  if (parallelism.context_method() != CONTEXT_A2A_P2P) return;
  parallelism.add_hierarchical_context(2);
  parallelism.add_hierarchical_context(size / 2);
}

}  // namespace

Scenario RandomRun(uint32_t seed) {
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
  if (training.recompute() == RECOMPUTE_FULL && one_in(2)) {
    training.set_recompute_method(one_in(2) ? RECOMPUTE_BLOCK
                                            : RECOMPUTE_UNIFORM);
    training.set_recompute_num_layers(2 + random() % 2);
  } else if (training.recompute() == RECOMPUTE_SELECTIVE && one_in(2)) {
    training.add_recompute_modules(CORE_ATTN);
    training.add_recompute_modules(LAYERNORM);
  }
  if (scenario.transformer().num_experts() > 0) {
    if (one_in(3)) training.set_moe_router_fusion(one_in(2));
    if (training.recompute() != RECOMPUTE_FULL && one_in(3)) {
      training.add_cuda_graph_scope(CUDA_GRAPH_ATTN);
      training.add_cuda_graph_scope(CUDA_GRAPH_MOE_ROUTER);
    }
  } else if (one_in(4)) {
    training.add_cuda_graph_scope(CUDA_GRAPH_FULL_ITERATION);
  }
  training.set_distributed_optimizer(one_in(3));
  training.set_fully_sharded(one_in(3));
  if (one_in(3)) training.set_optimizer(SGD_MOMENTUM);
  Communication& communication = *scenario.mutable_communication();
  communication.set_transfers(one_in(3) ? BLOCKING : OVERLAPPED);
  if (one_in(3)) communication.set_gradient_reduction(REDUCTION_OVERLAPPED);
  if (one_in(3)) SetContext(&random, &scenario);
  return scenario;
}

Scenario RandomTorchtitanRun(uint32_t seed) {
  std::mt19937 random(seed);
  const auto one_in = [&random](uint32_t n) { return random() % n == 0; };
  const auto& models = OptionTable::Of("torchtitan").table().models();
  Scenario scenario;
  *scenario.mutable_transformer() =
      models[static_cast<int>(random() % models.size())].transformer();
  scenario.set_cluster("dgx-a100");
  scenario.set_num_nodes(1);
  scenario.set_runtime(one_in(2) ? "torchtitan" : "torchtitan-compile");
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(OneOf<uint32_t>({1, 1, 2}, &random));
  parallelism.set_pipeline(OneOf<uint32_t>({1, 2, 2, 4}, &random));
  parallelism.set_data(kNumGpus / parallelism.tensor() /
                       parallelism.pipeline());
  parallelism.set_sequence_parallel(parallelism.tensor() > 1);
  if (parallelism.data() % 2 == 0 && one_in(3)) {
    parallelism.set_data(parallelism.data() / 2);
    parallelism.set_context(2);
    parallelism.set_context_method(one_in(2) ? CONTEXT_P2P
                                             : CONTEXT_ALL_GATHER);
  }
  scenario.set_schedule("1f1b");
  uint32_t chunks = 1;
  if (parallelism.pipeline() > 1) {
    std::vector<std::string> names = {"zb-h1", "interleaved-1f1b"};
    for (const TorchSchedule& one : TorchSchedules()) {
      names.emplace_back(one.name);
    }
    scenario.set_schedule(OneOf(names, &random));
    for (const TorchSchedule& one : TorchSchedules()) {
      if (one.name == scenario.schedule() && one.has_chunks) chunks = 2;
    }
    parallelism.set_chunks(chunks);
    const uint32_t num_stages = parallelism.pipeline() * chunks;
    const uint32_t num_layers = scenario.transformer().num_layers();
    if (num_layers % num_stages != 0 || one_in(3)) {
      for (const uint32_t blocks :
           TorchtitanBlocks(num_stages, num_layers, 1, 1)) {
        parallelism.add_blocks_per_stage(blocks);
      }
    }
  }
  Batch& batch = *scenario.mutable_batch();
  batch.set_microbatch_size(1 + random() % 2);
  batch.set_global_batch_size(
      batch.microbatch_size() * parallelism.data() *
      (parallelism.pipeline() > 1 ? 2 * parallelism.pipeline() * chunks : 1));
  batch.set_sequence_length(2048);
  Training& training = *scenario.mutable_training();
  training.set_fully_sharded(!one_in(5));
  training.set_precision(one_in(4) ? FP32 : MIXED_BF16);
  training.set_fp32_gradients(true);
  training.set_flash_attention(true);
  training.set_recompute(one_in(2) ? RECOMPUTE_FULL : RECOMPUTE_NONE);
  if (training.recompute() == RECOMPUTE_FULL && one_in(2)) {
    training.set_recompute_method(RECOMPUTE_EVERY);
    training.set_recompute_num_layers(2);
  }
  scenario.mutable_communication()->set_gradient_reduction(
      one_in(8) ? REDUCTION_BLOCKING : REDUCTION_OVERLAPPED);
  return scenario;
}

absl::StatusOr<scenarios::ResolvedScenario> ReadBack(
    Framework framework, const scenarios::ResolvedScenario& run) {
  const std::string folder = testing::TempDir() + "/read_back";
  ASSIGN_OR_RETURN(const ExportedRun exported,
                   ExportRun(framework, run, "run"));
  const std::string file = absl::StrCat(folder, "/run", exported.suffix);
  if (exported.needs_csv) {
    ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                     sim::ScheduleOfScenario(run, 1));
    RETURN_IF_ERROR(
        WriteFile(folder + "/run.csv", schedules::PrintCsv(schedule)));
  }
  ImportContext context;
  context.num_gpus = run.scenario.parallelism().tensor() *
                     run.scenario.parallelism().pipeline() * run.placement.data;
  const auto reader = framework == Framework::kMegatron ? ReadMegatronArguments
                      : framework == Framework::kNemo   ? ReadNemoSettings
                                                        : ReadTorchtitanJob;
  ASSIGN_OR_RETURN(ImportedRun read, reader(file, exported.contents, context));
  Scenario& scenario = read.scenario;
  const std::vector<std::string> options = ReadBackOptions(framework, run);
  for (size_t i = 0; i + 1 < options.size(); i += 2) {
    const std::string& value = options[i + 1];
    if (options[i] == "--cluster") {
      scenario.set_cluster(value);
    } else if (options[i] == "--nodes") {
      scenario.set_num_nodes(std::stoi(value));
    } else if (options[i] == "--dp") {
      scenario.mutable_parallelism()->set_data(std::stoi(value));
    } else if (options[i] == "--profile") {
      scenario.set_profile(value);
    } else if (options[i] == "--runtime") {
      scenario.set_runtime(value);
    } else if (options[i] == "--transfers") {
      scenario.mutable_communication()->set_transfers(OVERLAPPED);
    } else if (options[i] == "--set") {
      for (absl::string_view figure : absl::StrSplit(value, ',')) {
        scenario.add_set_figures(std::string(figure));
      }
    } else {
      return absl::InternalError(options[i]);
    }
  }
  return scenarios::ResolveScenario(file, scenario);
}

namespace {

void FillModel(Transformer* model) {
  model->clear_default_sequence_length();
  if (model->num_kv_heads() == 0) model->set_num_kv_heads(model->num_heads());
  if (model->head_size() == 0) {
    model->set_head_size(model->hidden_size() / model->num_heads());
  }
  if (model->feed_forward_size() == 0) {
    model->set_feed_forward_size(4 * model->hidden_size());
  }
  if (model->num_experts() == 0) return;
  if (model->expert_feed_forward_size() == 0) {
    model->set_expert_feed_forward_size(model->feed_forward_size());
  }
  model->set_expert_block_interval(
      std::max(model->expert_block_interval(), 1u));
}

void FillStages(const Transformer& model, Parallelism* parallelism) {
  if (!parallelism->blocks_per_stage().empty()) return;
  const uint32_t num_stages = parallelism->pipeline() * parallelism->chunks();
  std::vector<uint32_t> blocks(num_stages, model.num_layers() / num_stages);
  if (!parallelism->layout().empty()) {
    const auto layout = models::ParseLayout("", parallelism->layout());
    if (!layout.ok()) return;
    blocks.clear();
    for (const auto& stage : *layout) {
      blocks.push_back(static_cast<uint32_t>(models::CountBlocks({stage})));
    }
    if (std::count(blocks.begin(), blocks.end(), 0u) > 0) return;
    parallelism->clear_layout();
  }
  parallelism->mutable_blocks_per_stage()->Assign(blocks.begin(), blocks.end());
}

}  // namespace

Scenario Canonical(const scenarios::ResolvedScenario& run) {
  Scenario scenario = run.scenario;
  scenario.clear_name();
  scenario.clear_model();
  scenario.clear_set_figures();
  *scenario.mutable_transformer() = run.model.transformer();
  FillModel(scenario.mutable_transformer());
  Parallelism& parallelism = *scenario.mutable_parallelism();
  FillStages(scenario.transformer(), &parallelism);
  if (parallelism.data() == 1 || parallelism.pipeline() == 1) {
    parallelism.set_order("tp-dp-pp");
  }
  parallelism.set_sequence_parallel(parallelism.sequence_parallel() &&
                                    parallelism.tensor() > 1);
  Training& training = *scenario.mutable_training();
  if (training.precision() == FP32) training.set_fp32_gradients(true);
  training.set_fp32_gradients(training.fp32_gradients());
  training.set_post_validation(training.post_validation());
  training.set_flash_attention(training.flash_attention());
  training.set_distributed_optimizer(training.distributed_optimizer());
  training.set_moe_router_fusion(scenarios::FusesRouter(training, run.runtime));
  Communication& communication = *scenario.mutable_communication();
  if (parallelism.pipeline() == 1) communication.set_transfers(OVERLAPPED);
  if (parallelism.data() == 1) {  // nothing to reduce or to shard
    communication.set_gradient_reduction(REDUCTION_BLOCKING);
    communication.clear_bucket_bytes();
    training.set_fully_sharded(false);
  }
  if (communication.gradient_reduction() == REDUCTION_OVERLAPPED &&
      communication.bucket_bytes() == 0 && run.runtime.bucket_elements() == 0 &&
      !training.fully_sharded()) {
    communication.set_bucket_bytes(25.0 * (1 << 20));
  }
  if (const auto kind = schedules::FindScheduleKind(scenario.schedule());
      schedules::IsScheduleFile(scenario.schedule()) ||
      (kind.ok() && (*kind)->flush)) {
    training.clear_stash_bytes_per_parameter();
  }
  // A schedule is the order of its passes.
  if (const auto kind = schedules::FindScheduleKind(scenario.schedule());
      kind.ok() && !schedules::OrdersByCosts(scenario.schedule())) {
    const auto schedule = sim::ScheduleOfScenario(run, 1);
    if (schedule.ok()) {
      scenario.set_schedule(absl::StrCat(schedules::OrderHash(*schedule)));
    }
  } else if (schedules::IsScheduleFile(scenario.schedule())) {
    const auto schedule = sim::ScheduleOfScenario(run, 1);
    if (schedule.ok()) {
      scenario.set_schedule(absl::StrCat(schedules::OrderHash(*schedule)));
    }
  }
  return scenario;
}

void ExpectSameRun(const scenarios::ResolvedScenario& found,
                   const scenarios::ResolvedScenario& expected) {
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  EXPECT_TRUE(differencer.Compare(Canonical(expected), Canonical(found)))
      << differences;
  EXPECT_TRUE(differencer.Compare(expected.runtime, found.runtime))
      << differences;
  EXPECT_EQ(found.num_microbatches, expected.num_microbatches);
}

}  // namespace weir::plan
