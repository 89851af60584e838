// SPDX-License-Identifier: Apache-2.0
// Reads files of frameworks: what is used, ignored and refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plan/frameworks/imported_run.h"

namespace weir::plan::readers_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kNemo[] = R"(# overrides
model:
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 14336
  num_attention_heads: 32
  num_query_groups: 8
  normalization: RMSNorm
  gated_linear_unit: true
  activation_func:
    _target_: torch.nn.functional.silu
    _call_: false
  add_bias_linear: false
  share_embeddings_and_output_weights: false
  position_embedding_type: rope
  vocab_size: 128256
  attention_dropout: 0.0
  hidden_dropout: 0.0
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: 2
  sequence_parallel: true
  seq_length: 8192
  recompute_granularity: null
  fp8: null
train:
  micro_batch_size: 1
  global_batch_size: 128
  train_iters: 100
ddp:
  overlap_grad_reduce: true
  use_distributed_optimizer: true
mixed_precision: bf16_mixed
checkpoint:
  save: /checkpoints
)";

TEST(NemoReaderTest, ReadsOverrides) {
  const auto run = ReadNemoSettings("x.yaml", kNemo, {});
  ASSERT_TRUE(run.ok()) << run.status();
  const Scenario& scenario = run->scenario;
  EXPECT_EQ(scenario.transformer().num_kv_heads(), 8u);
  EXPECT_TRUE(scenario.transformer().gated_feed_forward());
  EXPECT_FALSE(scenario.transformer().tied_embeddings());
  EXPECT_EQ(scenario.transformer().vocabulary_size(), 128256u);
  EXPECT_EQ(scenario.transformer().num_positions(), 0u);
  EXPECT_EQ(scenario.schedule(), "interleaved-1f1b");
  EXPECT_EQ(scenario.parallelism().chunks(), 2u);
  EXPECT_TRUE(scenario.parallelism().sequence_parallel());
  EXPECT_EQ(scenario.training().precision(), MIXED_BF16);
  EXPECT_TRUE(scenario.training().fp32_gradients());
  EXPECT_TRUE(scenario.training().distributed_optimizer());
  EXPECT_TRUE(scenario.training().flash_attention());
  EXPECT_FALSE(scenario.training().dropout());
  EXPECT_EQ(scenario.communication().gradient_reduction(),
            REDUCTION_OVERLAPPED);
  EXPECT_EQ(scenario.runtime(), "nemo");
  EXPECT_EQ(scenario.batch().sequence_length(), 8192u);
  const std::string summary = SummaryOf(run->report);
  EXPECT_THAT(summary, HasSubstr("checkpoints (checkpoint.save)"));
  EXPECT_THAT(summary, HasSubstr("(train.train_iters)"));
}

TEST(NemoReaderTest, ReadsDottedOverrides) {
  const auto run = ReadNemoSettings(
      "x.txt",
      "# of run_recipe.py\n"
      "model.num_layers=4 \n++model.hidden_size=64\n"
      "model.num_attention_heads=4 \\\n"
      "model.vocab_size=1000\ntrain.global_batch_size=8\n"
      "model.seq_length=128\nmodel.max_position_embeddings=${.seq_length}\n",
      {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->scenario.transformer().num_layers(), 4u);
  EXPECT_EQ(run->scenario.transformer().num_positions(), 128u);
  // The default of the framework, not of weir.
  EXPECT_TRUE(run->scenario.training().dropout());
}

TEST(NemoReaderTest, ReadsOverlappedExchangesOfExperts) {
  const auto run = ReadNemoSettings(
      "x.yaml",
      absl::StrCat(kNemo,
                   "comm_overlap:\n  overlap_moe_expert_parallel_comm: true\n"),
      {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(run->scenario.communication().overlap_expert_exchange());
}

TEST(NemoReaderTest, RefusesWhatIsNotSimulatedUnlessItIsLeftOut) {
  const std::string text =
      absl::StrCat(kNemo, "comm_overlap:\n  delay_wgrad_compute: true\n");
  const auto run = ReadNemoSettings("x.yaml", text, {});
  EXPECT_EQ(
      std::string(run.status().message()),
      "x.yaml:37: comm_overlap.delay_wgrad_compute is true, which "
      "is not simulated (communication and its overlap): remove it, or predict "
      "the run without it by --leave-out "
      "comm_overlap.delay_wgrad_compute");
  ImportContext context;
  context.left_out = {"comm_overlap.delay_wgrad_compute"};
  const auto without = ReadNemoSettings("x.yaml", text, context);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_THAT(SummaryOf(without->report), HasSubstr("left out as requested"));
  // A complete configuration names everything that is turned off.
  const auto off = ReadNemoSettings(
      "x.yaml", absl::StrCat(kNemo, "dist:\n  use_sharp: false\n"), {});
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_THAT(SummaryOf(off->report), HasSubstr("turned off (dist.use_sharp)"));
}

TEST(NemoReaderTest, NeedsAModelFromElsewhereIfARecipeHasIt) {
  const auto run = ReadNemoSettings(
      "x.yaml", "model:\n  tensor_model_parallel_size: 4\n", {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_FALSE(run->scenario.has_transformer());
  EXPECT_THAT(run->report.missing, ElementsAre("the model: give --model"));
}

TEST(NemoReaderTest, NamesTheLineOfAWrongValue) {
  const auto run = ReadNemoSettings(
      "x.yaml",
      "model:\n  num_layers: many\n  sequence_parallel: perhaps\n"
      "  context_parallel_size: 0\n",
      {});
  const std::string message(run.status().message());
  EXPECT_THAT(message, HasSubstr("x.yaml:2: model.num_layers is many, expected "
                                 "a whole number, 1 or more"));
  EXPECT_THAT(message, HasSubstr("x.yaml:3: model.sequence_parallel is "
                                 "perhaps, expected true or false"));
  EXPECT_THAT(message,
              HasSubstr("x.yaml:4: model.context_parallel_size is 0, expected "
                        "a whole number, 1 or more"));
}

constexpr char kTorchtitan[] = R"([model]
name = "llama3"
flavor = "8B"

[training]
local_batch_size = 8
seq_len = 4096
compile = true

[parallelism]
data_parallel_shard_degree = -1
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "Interleaved1F1B"

[activation_checkpoint]
mode = "full"

[checkpoint]
interval = 500
)";

TEST(TorchtitanReaderTest, ReadsAJob) {
  ImportContext context;
  context.num_gpus = 16;
  const auto run = ReadTorchtitanJob("x.toml", kTorchtitan, context);
  ASSERT_TRUE(run.ok()) << run.status();
  const Scenario& scenario = run->scenario;
  EXPECT_EQ(scenario.transformer().feed_forward_size(), 14336u);
  EXPECT_EQ(scenario.parallelism().data(), 4u);
  EXPECT_TRUE(scenario.training().fully_sharded());
  EXPECT_EQ(scenario.schedule(), "interleaved-1f1b");
  EXPECT_EQ(scenario.parallelism().chunks(), 2u);
  // 32 layers and two for the ends on 8 stages: 5 and 5 with two more.
  EXPECT_THAT(scenario.parallelism().blocks_per_stage(),
              ElementsAre(4, 5, 4, 4, 4, 4, 4, 3));
  EXPECT_EQ(scenario.batch().global_batch_size(), 32u);
  EXPECT_EQ(scenario.batch().microbatch_size(), 1u);
  EXPECT_EQ(scenario.training().precision(), MIXED_BF16);
  EXPECT_EQ(scenario.training().recompute(), RECOMPUTE_FULL);
  EXPECT_EQ(scenario.runtime(), "torchtitan-compile");
  EXPECT_THAT(SummaryOf(run->report),
              HasSubstr("simulated as fsdp_reshard_after_forward"));
}

TEST(TorchtitanReaderTest, ReadsContextParallelism) {
  for (const auto& [rotate, method] :
       {std::pair("allgather", CONTEXT_ALL_GATHER),
        std::pair("alltoall", CONTEXT_P2P)}) {
    ImportContext context;
    context.num_gpus = 16;
    const auto run = ReadTorchtitanJob(
        "x.toml",
        absl::StrCat("[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
                     "[parallelism]\ncontext_parallel_degree = 8\n"
                     "context_parallel_rotate_method = \"",
                     rotate,
                     "\"\n[training]\nlocal_batch_size = 1\n"
                     "[activation_checkpoint]\nmode = \"full\"\n"),
        context);
    ASSERT_TRUE(run.ok()) << run.status();
    const Parallelism& parallelism = run->scenario.parallelism();
    EXPECT_EQ(parallelism.context(), 8u);
    EXPECT_EQ(parallelism.context_method(), method);
    EXPECT_EQ(parallelism.data(), 2u);
    EXPECT_TRUE(run->scenario.training().fully_sharded());
    EXPECT_EQ(run->scenario.batch().global_batch_size(), 2u);
  }
}

TEST(NemoReaderTest, ReadsContextParallelism) {
  const auto run = ReadNemoSettings(
      "x.yaml",
      "model:\n  context_parallel_size: 8\n  cp_comm_type: a2a+p2p\n"
      "  hierarchical_context_parallel_sizes: [2, 4]\n",
      {});
  ASSERT_TRUE(run.ok()) << run.status();
  const Parallelism& parallelism = run->scenario.parallelism();
  EXPECT_EQ(parallelism.context(), 8u);
  EXPECT_EQ(parallelism.context_method(), CONTEXT_A2A_P2P);
  EXPECT_THAT(parallelism.hierarchical_context(), ElementsAre(2u, 4u));
}

TEST(NemoReaderTest, ReadsAdapters) {
  const auto lora_of = [](const std::string& more) {
    const auto run = ReadNemoSettings("x.yaml", kNemo + more, {});
    EXPECT_TRUE(run.ok()) << run.status();
    return run->scenario.training().lora();
  };
  EXPECT_EQ(lora_of("").rank(), 0u);
  EXPECT_EQ(lora_of("peft: lora\n").rank(), 32u);
  EXPECT_EQ(lora_of("peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n"
                    "  dim: 16\n  alpha: 32\n")
                .rank(),
            16u);
  const Lora some =
      lora_of("peft:\n  dim: 8\n  target_modules: [linear_qkv, linear_fc2]\n");
  EXPECT_EQ(some.rank(), 8u);
  EXPECT_THAT(some.target_modules(), ElementsAre(LINEAR_QKV, LINEAR_FC2));
  EXPECT_EQ(lora_of("peft: null\n").rank(), 0u);
  EXPECT_THAT(std::string(ReadNemoSettings(
                              "x.yaml", std::string(kNemo) + "peft: dora\n", {})
                              .status()
                              .message()),
              HasSubstr("peft is dora, expected lora"));
}

TEST(NemoReaderTest, ReadsDispatchers) {
  const auto run = ReadNemoSettings(
      "x.txt",
      "model.num_layers=4\nmodel.hidden_size=64\nmodel.vocab_size=1000\n"
      "model.num_attention_heads=4\nmodel.num_moe_experts=8\n"
      "model.moe_router_topk=2\nmodel.moe_token_dispatcher_type=flex\n"
      "model.moe_enable_deepep=true\nmodel.moe_deepep_num_sms=24\n"
      "optimizer.optimizer=dist_muon\noptimizer.muon_num_ns_steps=3\n"
      "train.global_batch_size=8\nmodel.seq_length=128\n",
      {});
  ASSERT_TRUE(run.ok()) << run.status();
  const Communication& communication = run->scenario.communication();
  EXPECT_EQ(communication.token_dispatcher(), TOKENS_DEEPEP);
  EXPECT_EQ(communication.dispatch_multiprocessors(), 24u);
  EXPECT_EQ(run->scenario.training().optimizer(), DIST_MUON);
  EXPECT_EQ(run->scenario.training().muon_num_ns_steps(), 3u);
  EXPECT_TRUE(run->scenario.training().distributed_optimizer());
}

TEST(NemoReaderTest, ReadsCudaGraphs) {
  const auto read = [](const std::string& settings) {
    const auto run = ReadNemoSettings(
        "x.txt",
        "model.num_layers=4\nmodel.hidden_size=64\nmodel.vocab_size=1000\n"
        "model.num_attention_heads=4\nmodel.num_moe_experts=8\n"
        "model.moe_router_topk=2\ntrain.global_batch_size=8\n"
        "model.seq_length=128\n" +
            settings,
        {});
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? run->scenario.training() : Training();
  };
  const Training graphs = read(
      "model.cuda_graph_impl=transformer_engine\n"
      "model.cuda_graph_scope=[\"attn\", \"moe_router\"]\n"
      "model.moe_router_fusion=true\n");
  ASSERT_EQ(graphs.cuda_graph_scope_size(), 2);
  EXPECT_EQ(graphs.cuda_graph_scope(0), CUDA_GRAPH_ATTN);
  EXPECT_EQ(graphs.cuda_graph_scope(1), CUDA_GRAPH_MOE_ROUTER);
  EXPECT_TRUE(graphs.moe_router_fusion());
  // Off unless given, although the runtime "nemo" fuses routers.
  for (const char* off : {"", "model.moe_router_fusion=false\n"}) {
    const Training training = read(off);
    EXPECT_TRUE(training.has_moe_router_fusion());
    EXPECT_FALSE(training.moe_router_fusion());
    EXPECT_EQ(training.cuda_graph_scope_size(), 0);
  }
}

TEST(NemoReaderTest, ReadsBackendsOfTheFlexDispatcher) {
  const auto read = [](const std::string& settings) {
    return ReadNemoSettings(
        "x.txt",
        "model.num_layers=4\nmodel.hidden_size=64\nmodel.vocab_size=1000\n"
        "model.num_attention_heads=4\nmodel.num_moe_experts=8\n"
        "model.moe_router_topk=2\nmodel.moe_token_dispatcher_type=flex\n"
        "train.global_batch_size=8\nmodel.seq_length=128\n" +
            settings,
        {});
  };
  const auto run = read(
      "model.moe_flex_dispatcher_backend=hybridep\n"
      "model.moe_hybridep_num_sms=32\n");
  ASSERT_TRUE(run.ok()) << run.status();
  const Communication& communication = run->scenario.communication();
  EXPECT_EQ(communication.token_dispatcher(), TOKENS_HYBRID_EP);
  EXPECT_EQ(communication.dispatch_multiprocessors(), 32u);
  EXPECT_THAT(read("").status().message(),
              HasSubstr("model.moe_token_dispatcher_type is flex, expected "
                        "model.moe_enable_deepep or "
                        "model.moe_flex_dispatcher_backend hybridep with it"));
  EXPECT_THAT(read("model.moe_flex_dispatcher_backend=hybridep\n"
                   "model.moe_enable_deepep=true\n")
                  .status()
                  .message(),
              HasSubstr("expected either model.moe_enable_deepep or "));
}

TEST(NemoReaderTest, ReadsRecipes) {
  const auto run = ReadNemoSettings(
      "x.yaml", "mixed_precision: bf16_with_fp8_current_scaling_mixed\n", {});
  ASSERT_TRUE(run.ok()) << run.status();
  const Training& training = run->scenario.training();
  EXPECT_EQ(training.recipe(), "fp8-current");
  EXPECT_TRUE(training.quantized_parameters());
  EXPECT_EQ(training.first_blocks_in_16_bits(), 1u);
  EXPECT_EQ(training.last_blocks_in_16_bits(), 1u);
  const auto keys = ReadNemoSettings(
      "x.yaml",
      "mixed_precision:\n  bf16: true\n  fp8: e4m3\n  fp8_recipe: mxfp8\n"
      "  fp8_param_gather: true\n",
      {});
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->scenario.training().recipe(), "mxfp8");
  EXPECT_TRUE(keys->scenario.training().quantized_parameters());
}

TEST(TorchtitanReaderTest, NamesLineAndKeyOfWhatItRefuses) {
  const auto run = ReadTorchtitanJob(
      "x.toml",
      "[model]\nname = \"llama3\"\nflavor = \"9B\"\nconverters = "
      "[\"float8\"]\n[parallelism]\nexpert_parallel_degree = 2\n",
      {});
  const std::string message(run.status().message());
  EXPECT_THAT(message, HasSubstr("x.toml:3: model.flavor is llama3 9B, "
                                 "expected one of llama3 8B"));
  EXPECT_THAT(message, HasSubstr("x.toml:4: model.converters is [\"float8\"], "
                                 "which is not simulated (precision)"));
}

TEST(TorchtitanReaderTest, ReadsExpertsAndHybridSharding) {
  ImportContext context;
  context.num_gpus = 64;
  const auto read = [&](const std::string& more) {
    return ReadTorchtitanJob(
        "x.toml",
        absl::StrCat("[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
                     "[parallelism]\ntensor_parallel_degree = 2\n"
                     "data_parallel_replicate_degree = 4\n",
                     more, "[activation_checkpoint]\nmode = \"none\"\n"),
        context);
  };
  const auto run = read("expert_parallel_degree = 16\n");
  ASSERT_TRUE(run.ok()) << run.status();
  const Parallelism& parallelism = run->scenario.parallelism();
  EXPECT_EQ(parallelism.data(), 32);
  EXPECT_EQ(parallelism.data_replicate(), 4);
  EXPECT_TRUE(run->scenario.training().fully_sharded());
  EXPECT_EQ(parallelism.expert(), 16);
  EXPECT_EQ(parallelism.expert_tensor(), 1);
  const auto same =
      read("expert_parallel_degree = 4\nexpert_tensor_parallel_degree = 2\n");
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->scenario.parallelism().expert(), 4);
  EXPECT_EQ(same->scenario.parallelism().expert_tensor(), 0);
  EXPECT_THAT(
      std::string(read("expert_parallel_degree = 4\n"
                       "expert_tensor_parallel_degree = 4\n")
                      .status()
                      .message()),
      HasSubstr("parallelism.expert_tensor_parallel_degree is 4, expected 1 or "
                "parallelism.tensor_parallel_degree"));
}

TEST(TorchtitanReaderTest, ReadsRecomputationOfEveryNthLayer) {
  const auto read = [](const std::string& option) {
    return ReadTorchtitanJob("x.toml",
                             "[model]\nname = \"llama3\"\n"
                             "flavor = \"8B\"\n"
                             "[activation_checkpoint]\n"
                             "mode = \"selective\"\n" +
                                 option,
                             {});
  };
  // The default is every second layer.
  for (const char* option : {"", "selective_ac_option = \"2\"\n"}) {
    const auto run = read(option);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->scenario.training().recompute(), RECOMPUTE_FULL);
    EXPECT_EQ(run->scenario.training().recompute_method(), RECOMPUTE_EVERY);
    EXPECT_EQ(run->scenario.training().recompute_num_layers(), 2u);
  }
  EXPECT_THAT(
      std::string(read("selective_ac_option = \"all\"\n").status().message()),
      HasSubstr("activation_checkpoint.selective_ac_option is all, expected "
                "op, or n"));
}

TEST(TorchtitanReaderTest, ReadsRecomputationOfOperators) {
  const auto run = ReadTorchtitanJob("x.toml",
                                     "[model]\nname = \"llama3\"\n"
                                     "flavor = \"8B\"\n"
                                     "[activation_checkpoint]\n"
                                     "mode = \"selective\"\n"
                                     "selective_ac_option = \"op\"\n",
                                     {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->scenario.training().recompute(), RECOMPUTE_OPERATORS);
}

TEST(TorchtitanReaderTest, ReportsWrongToml) {
  const auto run = ReadTorchtitanJob("x.toml", "[model\nname = 1\n", {});
  EXPECT_THAT(std::string(run.status().message()),
              HasSubstr("x.toml:1: is not TOML"));
}

constexpr char kDeepSpeed[] = R"({
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "zero_optimization": {
    "stage": 1,
    "reduce_bucket_size": 5e8,
    "overlap_comm": true
  },
  "bf16": {"enabled": true},
  "steps_per_print": 10,
  "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": [0.9, 0.95]}}
})";

TEST(DeepSpeedReaderTest, ReadsAConfiguration) {
  Scenario base;
  base.mutable_parallelism()->set_pipeline(2);
  base.set_model("gpt2");
  ImportContext context;
  context.num_gpus = 8;
  const auto run = ReadDeepSpeedConfig("ds.json", kDeepSpeed, context, base);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->scenario.model(), "gpt2");
  EXPECT_EQ(run->scenario.batch().global_batch_size(), 32u);  // 2 x 4 x 4
  EXPECT_EQ(run->scenario.batch().microbatch_size(), 2u);
  EXPECT_TRUE(run->scenario.training().distributed_optimizer());
  EXPECT_FALSE(run->scenario.training().fully_sharded());
  EXPECT_EQ(run->scenario.training().precision(), MIXED_BF16);
  EXPECT_FALSE(run->scenario.training().fp32_gradients());
  EXPECT_EQ(run->scenario.communication().bucket_bytes(), 1e9);
  EXPECT_EQ(run->scenario.runtime(), "megatron-deepspeed");
  EXPECT_THAT(SummaryOf(run->report), HasSubstr("(steps_per_print)"));
}

TEST(DeepSpeedReaderTest, NamesLineAndKeyOfWhatItRefuses) {
  const auto run = ReadDeepSpeedConfig(
      "ds.json",
      "{\n \"zero_optimization\": {\n  \"stage\": 2,\n"
      "  \"offload_optimizer\": {\"device\": \"cpu\"}\n }\n}\n",
      {}, {});
  const std::string message(run.status().message());
  EXPECT_THAT(message, HasSubstr("ds.json:3: zero_optimization.stage is 2, "
                                 "expected 0, 1 or 3"));
  EXPECT_THAT(message,
              HasSubstr("ds.json:4: zero_optimization.offload_optimizer.device "
                        "is cpu, which is not simulated (memory)"));
  const auto broken = ReadDeepSpeedConfig("ds.json", "{\n\"a\": }", {}, {});
  EXPECT_THAT(std::string(broken.status().message()),
              HasSubstr("ds.json:2: is not JSON"));
}

constexpr char kSlurm[] = R"(#!/bin/bash
#SBATCH --job-name=pretrain
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=h100:8   # a comment
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=2
PP=${PP:-4}
MODEL_ARGS=" \
    --num-layers 32 --hidden-size 4096 \
    --num-attention-heads 32 \
"
TRAIN_ARGS=(
    --micro-batch-size 1
    --global-batch-size $((SLURM_NNODES * 8))   # not evaluated
    --seq-length 4096 --max-position-embeddings 4096
    --bf16
)
LAYOUT=(--tensor-model-parallel-size $TP
        --pipeline-model-parallel-size ${PP})
if [ -z "$DEBUG" ]; then TRAIN_ARGS+=(--global-batch-size 64); fi
srun --label bash -c "torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 \
    pretrain_gpt.py ${MODEL_ARGS} ${TRAIN_ARGS[*]} \
    ${LAYOUT[*]} --save $(pwd)/out"
)";

TEST(SlurmReaderTest, ReadsAScriptWithoutRunningIt) {
  std::string text = kSlurm;
  text.replace(text.find("    --global-batch-size $((SL"),
               text.find("    --seq-length") -
                   text.find("    --global-batch-size $((SL"),
               "");
  const auto run = ReadSlurmScript("x.sbatch", text, {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->num_gpus, 32u);
  EXPECT_EQ(run->scenario.num_nodes(), 4u);
  EXPECT_EQ(run->scenario.transformer().num_layers(), 32u);
  EXPECT_EQ(run->scenario.parallelism().tensor(), 2u);
  EXPECT_EQ(run->scenario.parallelism().pipeline(), 4u);
  EXPECT_EQ(run->scenario.batch().global_batch_size(), 64u);
  EXPECT_EQ(run->scenario.training().precision(), MIXED_BF16);
  EXPECT_THAT(SummaryOf(run->report),
              HasSubstr("the last assignment of each variable counts"));
}

TEST(SlurmReaderTest, RefusesWhatOnlyAShellKnows) {
  const auto run = ReadSlurmScript(
      "x.sh",
      "N=$(nproc)\nsrun -N 2 --gpus-per-node 8 python pretrain_gpt.py \\\n"
      "  --num-layers $N --hidden-size 64 --num-attention-heads 4\n",
      {});
  EXPECT_EQ(std::string(run.status().message()),
            "x.sh:3: --num-layers is $(nproc), which the file does not "
            "determine: give --model");
  EXPECT_THAT(
      std::string(
          ReadSlurmScript("x.sh", "srun hostname\n", {}).status().message()),
      HasSubstr("x.sh: has no command with arguments of Megatron-LM"));
  EXPECT_THAT(
      std::string(ReadSlurmScript("x.sh", "echo \"a\n", {}).status().message()),
      HasSubstr("x.sh:1: has a quote \" that does not end"));
}

TEST(SlurmReaderTest, BoundsExpansions) {
  std::string text = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 40; ++i) absl::StrAppend(&text, "A=$A$A\n");
  EXPECT_THAT(std::string(ReadSlurmScript("x.sh", text, {}).status().message()),
              HasSubstr("A has more than 64 KiB"));
}

// Files that would take a reader's stack or memory.
TEST(ReadersTest, BoundNesting) {
  std::string deep, aliases = "a: &a [1,1,1,1,1,1,1,1,1]\n";
  for (int i = 0; i < 100000; ++i) deep += "[";
  std::string previous = "a";
  for (int i = 0; i < 12; ++i) {
    const std::string name = absl::StrCat("b", i);
    absl::StrAppend(&aliases, name, ": &", name, " [*", previous);
    for (int k = 0; k < 8; ++k) absl::StrAppend(&aliases, ",*", previous);
    aliases += "]\n";
    previous = name;
  }
  EXPECT_FALSE(ReadNemoSettings("x", "a: " + deep, {}).ok());
  EXPECT_FALSE(ReadNemoSettings("x", aliases, {}).ok());
  EXPECT_FALSE(ReadTorchtitanJob("x", "a = " + deep, {}).ok());
  EXPECT_FALSE(ReadDeepSpeedConfig("x", "{\"a\": " + deep, {}, {}).ok());
}

}  // namespace weir::plan::readers_test
