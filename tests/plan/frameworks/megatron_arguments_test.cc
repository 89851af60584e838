// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/megatron_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "base/textproto.h"
#include "models/recompute.h"
#include "plan/frameworks/exported_run.h"
#include "plan/frameworks/imported_run.h"
#include "scenarios/recomputation.h"
#include "sim/simulate.h"
#include "tests/plan/frameworks/megatron_rules.h"
#include "tests/plan/frameworks/same_run.h"

namespace weir::plan::megatron_arguments_test {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

struct Case {
  std::string name;
  std::string scenario;  // textproto
};

void PrintTo(const Case& run, std::ostream* out) { *out << run.name; }

// Models of a few blocks with the architectures of well-known ones.
constexpr char kGpt[] = R"(
    transformer {
      num_layers: 8 hidden_size: 512 num_heads: 8 vocabulary_size: 50257
      num_positions: 1024 attention_bias: true attention_output_bias: true
      feed_forward_bias: true tied_embeddings: true causal: true
    })";
constexpr char kLlama[] = R"(
    transformer {
      num_layers: 8 hidden_size: 512 num_heads: 8 num_kv_heads: 4
      feed_forward_size: 1408 vocabulary_size: 32000 gated_feed_forward: true
      rms_norm: true causal: true default_sequence_length: 2048
    })";
constexpr char kQwen[] = R"(
    transformer {
      num_layers: 8 hidden_size: 512 num_heads: 8 num_kv_heads: 4 head_size: 128
      feed_forward_size: 1408 vocabulary_size: 32000 gated_feed_forward: true
      rms_norm: true causal: true default_sequence_length: 2048
      attention_bias: true query_key_norm: true sliding_window: 256
    })";
constexpr char kExperts[] = R"(
    transformer {
      num_layers: 8 hidden_size: 512 num_heads: 8 num_kv_heads: 4
      feed_forward_size: 1408 vocabulary_size: 32000 gated_feed_forward: true
      rms_norm: true causal: true default_sequence_length: 2048
      num_experts: 8 experts_per_token: 2 expert_feed_forward_size: 704
      num_shared_experts: 2 num_dense_blocks: 2 expert_block_interval: 2
      capacity_factor: 1.25
    })";
constexpr char kOnEight[] = R"(
    cluster: "dgx-a100" num_nodes: 1
    batch { microbatch_size: 1 global_batch_size: 16 sequence_length: 512 })";

const Case kCases[] = {
    {"Gpt", std::string(kGpt) + kOnEight + R"(
         schedule: "1f1b" parallelism { tensor: 2 pipeline: 4 }
         communication { transfers: BLOCKING })"},
    {"GptWithDropoutOnOneRank", std::string(kGpt) + kOnEight + R"(
         schedule: "1f1b" parallelism { data: 8 }
         training { dropout: true recompute: RECOMPUTE_SELECTIVE })"},
    {"Fp32", std::string(kGpt) + kOnEight + R"(
         schedule: "1f1b" parallelism { pipeline: 2 data: 4 }
         training { precision: FP32 optimizer: SGD_MOMENTUM })"},
    {"Llama", std::string(kLlama) + kOnEight + R"(
         schedule: "1f1b"
         parallelism { tensor: 2 pipeline: 2 data: 2 sequence_parallel: true }
         training { precision: MIXED_BF16 flash_attention: true })"},
    {"LlamaWithGradientsInBf16", std::string(kLlama) + kOnEight + R"(
         schedule: "1f1b" parallelism { pipeline: 4 data: 2 order: "tp-pp-dp" }
         training { precision: MIXED_BF16 fp32_gradients: false
                    distributed_optimizer: true recompute: RECOMPUTE_FULL }
         communication { gradient_reduction: REDUCTION_OVERLAPPED })"},
    {"LlamaInFp16WithGradientsInFp32", std::string(kLlama) + kOnEight + R"(
         schedule: "1f1b" parallelism { pipeline: 4 data: 2 }
         training { fp32_gradients: true })"},
    {"Interleaved", std::string(kLlama) + kOnEight + R"(
         schedule: "interleaved-1f1b"
         parallelism { pipeline: 4 data: 2 chunks: 2 }
         training { precision: MIXED_BF16 })"},
    {"InterleavedUnevenAndBlocking", std::string(kLlama) + kOnEight + R"(
         schedule: "interleaved-1f1b"
         parallelism { pipeline: 4 data: 2 chunks: 2
                       layout: "E|t*2|t|t|t|t|t|tL" }
         communication { transfers: BLOCKING })"},
    {"Uneven", std::string(kLlama) + kOnEight + R"(
         schedule: "1f1b"
         parallelism { pipeline: 4 data: 2 blocks_per_stage: [1, 3, 3, 1] })"},
    {"EqualToOneFOneB", std::string(kLlama) + kOnEight + R"(
         schedule: "bapipe-as" parallelism { pipeline: 4 data: 2 })"},
    {"Qwen", std::string(kQwen) + kOnEight + R"(
         schedule: "1f1b" parallelism { tensor: 4 pipeline: 2 }
         training { precision: MIXED_BF16 flash_attention: true })"},
    {"Fsdp", std::string(kLlama) + kOnEight + R"(
         schedule: "1f1b" parallelism { data: 8 }
         training { precision: MIXED_BF16 fully_sharded: true })"},
    {"Experts", std::string(kExperts) + kOnEight + R"(
         schedule: "1f1b"
         parallelism { tensor: 2 pipeline: 2 data: 2 expert: 2
                       sequence_parallel: true }
         training { precision: MIXED_BF16 flash_attention: true })"},
    {"FoldedExperts", std::string(kExperts) + kOnEight + R"(
         schedule: "1f1b"
         parallelism { tensor: 2 pipeline: 2 data: 2 expert: 4 expert_tensor: 1
                       sequence_parallel: true }
         training { precision: MIXED_BF16 flash_attention: true })"},
    {"HybridShards", std::string(kLlama) + kOnEight + R"(
         schedule: "1f1b"
         parallelism { pipeline: 2 data: 4 data_replicate: 2 }
         training { precision: MIXED_BF16 distributed_optimizer: true })"},
    {"Unfused", std::string(kLlama) + kOnEight + R"(
         schedule: "1f1b" parallelism { pipeline: 4 data: 2 }
         runtime: "pytorch")"},
};

scenarios::ResolvedScenario Resolve(const std::string& text) {
  Scenario scenario;
  const absl::Status parsed = ParseTextProto("test", text, &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *resolved;
}

class MegatronArgumentsTest : public testing::TestWithParam<Case> {};

TEST_P(MegatronArgumentsTest, AreWhatMegatronTakes) {
  const scenarios::ResolvedScenario scenario = Resolve(GetParam().scenario);
  EXPECT_THAT(MegatronObstacles(scenario), IsEmpty());
  const MegatronArgs args = ParseMegatronArgs(MegatronArguments(scenario));
  EXPECT_THAT(MegatronRefusals(args, 8), IsEmpty());
}

// The arguments start the run that was simulated.
TEST_P(MegatronArgumentsTest, ReadBackTheySimulateToTheSame) {
  const scenarios::ResolvedScenario given = Resolve(GetParam().scenario);
  const auto read = ReadBack(Framework::kMegatron, given);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSameRun(*read, given);
  const auto expected = sim::Simulate(given);
  const auto found = sim::Simulate(*read);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->batch_seconds(), expected->batch_seconds());
  EXPECT_EQ(found->peak_memory_bytes(), expected->peak_memory_bytes());
}

INSTANTIATE_TEST_SUITE_P(Models, MegatronArgumentsTest,
                         testing::ValuesIn(kCases),
                         [](const auto& run) { return run.param.name; });

MegatronArgs ArgsOf(const std::string& name) {
  for (const Case& one : kCases) {
    if (one.name == name) {
      return ParseMegatronArgs(MegatronArguments(Resolve(one.scenario)));
    }
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(MegatronArgumentTest, DescribeALlama) {
  const MegatronArgs args = ArgsOf("Llama");
  for (const char* name :
       {"--swiglu", "--disable-bias-linear", "--group-query-attention",
        "--untie-embeddings-and-output-weights", "--bf16",
        "--sequence-parallel", "--accumulate-allreduce-grads-in-fp32"}) {
    EXPECT_THAT(args, Contains(Pair(name, "")));
  }
  EXPECT_THAT(args, Contains(Pair("--normalization", "RMSNorm")));
  EXPECT_THAT(args, Contains(Pair("--position-embedding-type", "rope")));
  EXPECT_THAT(args, Contains(Pair("--max-position-embeddings", "2048")));
  EXPECT_THAT(args, Contains(Pair("--attention-backend", "flash")));
  EXPECT_THAT(args, Contains(Pair("--num-query-groups", "4")));
  // NullTokenizer adds one token.
  EXPECT_THAT(args, Contains(Pair("--vocab-size", "31999")));
}

TEST(MegatronArgumentTest, DescribeAGpt) {
  const MegatronArgs args = ArgsOf("Gpt");
  for (const char* name : {"--swiglu", "--disable-bias-linear", "--bf16",
                           "--untie-embeddings-and-output-weights"}) {
    EXPECT_FALSE(args.contains(name)) << name;
  }
  EXPECT_THAT(args, Contains(Pair("--normalization", "LayerNorm")));
  EXPECT_THAT(args,
              Contains(Pair("--position-embedding-type", "learned_absolute")));
  EXPECT_THAT(args, Contains(Pair("--max-position-embeddings", "1024")));
  EXPECT_THAT(args, Contains(Pair("--attention-backend", "unfused")));
}

TEST(MegatronArgumentTest, DescribeExperts) {
  const MegatronArgs args = ArgsOf("Experts");
  EXPECT_THAT(args, Contains(Pair("--num-experts", "8")));
  EXPECT_THAT(args, Contains(Pair("--moe-router-topk", "2")));
  EXPECT_THAT(args, Contains(Pair("--moe-grouped-gemm", "")));
  EXPECT_THAT(args, Contains(Pair("--moe-token-dispatcher-type", "alltoall")));
  EXPECT_THAT(args, Contains(Pair("--moe-ffn-hidden-size", "704")));
  EXPECT_THAT(args,
              Contains(Pair("--moe-shared-expert-intermediate-size", "1408")));
  EXPECT_THAT(args, Contains(Pair("--moe-layer-freq", "[0,0,1,0,1,0,1,0]")));
}

TEST(MegatronArgumentTest, DescribeDeepEpAndMuon) {
  std::string experts = kExperts;
  experts.erase(experts.find("capacity_factor: 1.25"), 21);
  const scenarios::ResolvedScenario run = Resolve(experts + kOnEight + R"(
         schedule: "1f1b" parallelism { pipeline: 2 data: 4 expert: 4 }
         communication { token_dispatcher: TOKENS_DEEPEP
                         dispatch_multiprocessors: 24 }
         training { precision: MIXED_BF16 flash_attention: true
                    optimizer: DIST_MUON muon_num_ns_steps: 3 })");
  EXPECT_THAT(MegatronObstacles(run), IsEmpty());
  const MegatronArgs args = ParseMegatronArgs(MegatronArguments(run));
  EXPECT_THAT(args, Contains(Pair("--moe-token-dispatcher-type", "flex")));
  EXPECT_THAT(args, Contains(Pair("--moe-enable-deepep", "")));
  EXPECT_THAT(args, Contains(Pair("--moe-deepep-num-sms", "24")));
  EXPECT_THAT(args, Contains(Pair("--optimizer", "dist_muon")));
  EXPECT_THAT(args, Contains(Pair("--muon-num-ns-steps", "3")));
  EXPECT_FALSE(args.contains("--use-distributed-optimizer"));
}

TEST(MegatronArgumentTest, DescribeHybridEp) {
  std::string experts = kExperts;
  experts.erase(experts.find("capacity_factor: 1.25"), 21);
  const MegatronArgs args =
      ParseMegatronArgs(MegatronArguments(Resolve(experts + kOnEight + R"(
         schedule: "1f1b" parallelism { pipeline: 2 data: 4 expert: 4 }
         communication { token_dispatcher: TOKENS_HYBRID_EP
                         dispatch_multiprocessors: 24 }
         training { precision: MIXED_BF16 flash_attention: true })")));
  EXPECT_THAT(args, Contains(Pair("--moe-token-dispatcher-type", "flex")));
  EXPECT_THAT(args,
              Contains(Pair("--moe-flex-dispatcher-backend", "hybridep")));
  EXPECT_THAT(args, Contains(Pair("--moe-hybridep-num-sms", "24")));
  EXPECT_FALSE(args.contains("--moe-enable-deepep"));
}

// Megatron-LM accumulates bf16 gradients in fp32 by default.
TEST(MegatronArgumentTest, GradientsHaveTheBytesThatAreCounted) {
  EXPECT_TRUE(
      ArgsOf("LlamaWithGradientsInBf16").contains("--grad-reduce-in-bf16"));
  EXPECT_FALSE(ArgsOf("Interleaved").contains("--grad-reduce-in-bf16"));
  const auto bytes = [](const char* name) {
    for (const Case& one : kCases) {
      if (one.name == name) {
        return Resolve(one.scenario).scenario.training().fp32_gradients();
      }
    }
    return false;
  };
  EXPECT_FALSE(bytes("LlamaWithGradientsInBf16"));
  EXPECT_TRUE(bytes("Interleaved"));
  EXPECT_FALSE(bytes("Gpt"));  // fp16
}

TEST(MegatronArgumentTest, SayWhichFieldsOfTheModelAreNotWritten) {
  scenarios::ResolvedScenario scenario =
      Resolve(std::string(kLlama) + kOnEight +
              R"(schedule: "1f1b" parallelism { pipeline: 2 data: 4 })");
  EXPECT_THAT(MegatronObstacles(scenario), IsEmpty());
  scenario.model.mutable_transformer()->set_num_mtp_modules(1);
  EXPECT_THAT(MegatronObstacles(scenario), IsEmpty());
  scenario.model.mutable_transformer()->set_extra_norms(2);
  EXPECT_THAT(MegatronObstacles(scenario),
              testing::ElementsAre("weir does not write its arguments for "
                                   "extra_norms"));
  scenario.model.mutable_transformer()->clear_extra_norms();
  scenario.scenario.mutable_parallelism()->set_vocabulary_parallel(
      VOCABULARY_ONE_BARRIER);
  scenario.scenario.mutable_batch()->mutable_packed_sequences()->set_fixed(9);
  EXPECT_THAT(MegatronObstacles(scenario), testing::SizeIs(2));
}

// The scenario replaces what the runtime does.
TEST(MegatronArgumentTest, OverlapsTensorParallelCollectivesAsTheScenarioSays) {
  const auto has = [](const std::string& more) {
    const scenarios::ResolvedScenario run =
        Resolve(std::string(kLlama) + kOnEight +
                R"(schedule: "1f1b"
                   parallelism { tensor: 2 data: 4 sequence_parallel: true })" +
                more);
    return absl::StrContains(MegatronArguments(run), "--tp-comm-overlap");
  };
  EXPECT_FALSE(has(""));
  EXPECT_TRUE(has("communication { tp_comm_overlap: true }"));
  EXPECT_FALSE(has(R"(runtime: "megatron-lm"
                      communication { tp_comm_overlap: false })"));
}

TEST(MegatronArgumentTest, SayWhyMegatronCannot) {
  const auto why = [](const std::string& rest) {
    return MegatronObstacles(Resolve(std::string(kLlama) + kOnEight + rest));
  };
  EXPECT_THAT(why(R"(schedule: "zb-h1" parallelism { pipeline: 8 })"),
              Contains(HasSubstr("does not have the schedule zb-h1")));
  EXPECT_THAT(
      why(R"(schedule: "interleaved-1f1b"
                     parallelism { data: 8 chunks: 2 }
                     training { precision: MIXED_BF16 fully_sharded: true })"),
      testing::ElementsAre("interleaved 1F1B needs at least 2 pipeline ranks"));
  EXPECT_THAT(why(R"(schedule: "interleaved-1f1b"
                     parallelism { pipeline: 2 data: 4 chunks: 2 }
                     communication { transfers: BLOCKING })"),
              testing::ElementsAre("interleaved 1F1B without overlapped "
                                   "transfers needs at least 3 pipeline "
                                   "ranks"));
  EXPECT_THAT(why(R"(schedule: "1f1b" parallelism { pipeline: 2
             gpus: [1, 0] })"),
              Contains(HasSubstr("numbers GPUs only as")));
  EXPECT_THAT(why(R"(schedule: "1f1b" parallelism { pipeline: 2 data: 4 }
                     training { fully_sharded: true })"),
              Contains(HasSubstr("--use-torch-fsdp2 needs")));
  EXPECT_THAT(why(R"(schedule: "1f1b" parallelism { pipeline: 2 data: 4 }
                     training { distributed_optimizer: true
                                optimizer: SGD_MOMENTUM })"),
              Contains(HasSubstr("distributed optimizer supports only Adam")));
}

TEST(MegatronReaderTest, NamesWhatItDoesNotSimulate) {
  const auto run = ReadMegatronArguments(
      "x.args",
      "--num-layers 4 --hidden-size=64 \\\n --lr 1e-4 --lr 1e-3 # --bf16\n"
      "--num-attention-heads '4' --fp16 --save /tmp/x",
      {});
  ASSERT_TRUE(run.ok()) << run.status();
  std::vector<std::string> ignored;
  for (const IgnoredSetting& setting : run->report.ignored) {
    ignored.push_back(absl::StrCat(setting.setting.key, " ",
                                   setting.setting.value, " ",
                                   setting.setting.line));
  }
  EXPECT_THAT(ignored, testing::ElementsAre("--lr 1e-4 2", "--lr 1e-3 2",
                                            "--save /tmp/x 3"));
  EXPECT_EQ(run->scenario.transformer().hidden_size(), 64u);
  EXPECT_EQ(run->scenario.transformer().num_heads(), 4u);
  EXPECT_EQ(run->scenario.training().precision(), MIXED_FP16);
  EXPECT_TRUE(run->scenario.training().dropout());  // Megatron-LM's default
}

TEST(MegatronReaderTest, RefusesWhatItCannotRead) {
  const auto run = ReadMegatronArguments(
      "x.args", "--num-layers many --cp-comm-type ring --hidden-size --bf16",
      {});
  const std::string message(run.status().message());
  EXPECT_THAT(message, HasSubstr("x.args:1: --num-layers is many, expected a "
                                 "whole number"));
  EXPECT_THAT(message,
              HasSubstr("x.args:1: --cp-comm-type is ring, expected a2a or "
                        "a2a+p2p or all_gather or p2p"));
  EXPECT_THAT(message, HasSubstr("x.args:1: --hidden-size has no value"));
  EXPECT_THAT(message, Not(HasSubstr("bf16")));
}

std::string MessageFor(const std::string& args) {
  const auto run = ReadMegatronArguments(
      "x.args",
      "--num-layers 8 --hidden-size 64 --num-attention-heads 4 " + args, {});
  return run.ok() ? "" : std::string(run.status().message());
}

TEST(MegatronReaderTest, TakesTheDefaultWidthOfExperts) {
  const auto run = ReadMegatronArguments(
      "x.args",
      "--num-layers 4 --hidden-size 192 --num-attention-heads 4 "
      "--num-experts 8 --moe-router-topk 2",
      {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->scenario.transformer().feed_forward_size(), 768u);
  EXPECT_EQ(run->scenario.transformer().num_shared_experts(), 0u);
  // With gates, two thirds of that, in multiples of 64.
  const auto gated = ReadMegatronArguments(
      "x.args",
      "--num-layers 4 --hidden-size 160 --num-attention-heads 4 --swiglu "
      "--num-experts 8 --moe-shared-expert-intermediate-size 768",
      {});
  ASSERT_TRUE(gated.ok()) << gated.status();
  EXPECT_EQ(gated->scenario.transformer().feed_forward_size(), 384u);
  EXPECT_EQ(gated->scenario.transformer().num_shared_experts(), 2u);
}

TEST(MegatronReaderTest, ReadsLayersPerVirtualStage) {
  const auto run = ReadMegatronArguments(
      "x.args",
      "--num-layers 8 --hidden-size 64 --num-attention-heads 4 "
      "--pipeline-model-parallel-size 2 "
      "--num-layers-per-virtual-pipeline-stage 2",
      {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->scenario.parallelism().chunks(), 2u);
  EXPECT_EQ(run->scenario.schedule(), "interleaved-1f1b");
  EXPECT_EQ(
      MessageFor("--pipeline-model-parallel-size 2 "
                 "--num-layers-per-virtual-pipeline-stage 0"),
      "x.args:1: --num-layers-per-virtual-pipeline-stage is 0, expected a "
      "whole number, 1 or more");
  for (const char* layers : {"3", "5", "8"}) {
    EXPECT_THAT(
        MessageFor(std::string("--pipeline-model-parallel-size 2 "
                               "--num-layers-per-virtual-pipeline-stage ") +
                   layers),
        HasSubstr(std::string("--num-layers-per-virtual-pipeline-stage is ") +
                  layers + ", expected a divisor"));
  }
}

TEST(MegatronReaderTest, RefusesInterleavingOnTooFewRanks) {
  const std::string two = "--num-virtual-stages-per-pipeline-rank 2 ";
  EXPECT_EQ(MessageFor(two),
            "x.args: --pipeline-model-parallel-size is 1, expected at least 2 "
            "with 2 virtual stages per rank");
  EXPECT_EQ(MessageFor("--pipeline-model-parallel-layout Et*4|t*4L"),
            "x.args: --pipeline-model-parallel-size is 1, expected at least 2 "
            "with 2 virtual stages per rank");
  EXPECT_EQ(MessageFor(two + "--pipeline-model-parallel-size 2"), "");
  EXPECT_EQ(MessageFor(two + "--pipeline-model-parallel-size 2 "
                             "--no-overlap-p2p-communication"),
            "x.args: --pipeline-model-parallel-size is 2, expected at least 3 "
            "with 2 virtual stages per rank and "
            "--no-overlap-p2p-communication");
}

TEST(MegatronReaderTest, RefusesArgumentsThatExcludeEachOther) {
  EXPECT_EQ(MessageFor("--bf16 --fp16"),
            "x.args: --fp16 cannot be combined with --bf16");
  EXPECT_EQ(MessageFor("--pipeline-model-parallel-size 2 "
                       "--pipeline-model-parallel-layout Et*4|t*4L "
                       "--num-virtual-stages-per-pipeline-rank 2"),
            "x.args: --pipeline-model-parallel-layout cannot be combined with "
            "--num-virtual-stages-per-pipeline-rank");
  EXPECT_EQ(MessageFor("--pipeline-model-parallel-size 3 "
                       "--pipeline-model-parallel-layout Et*4|t*4L"),
            "x.args: --pipeline-model-parallel-layout has 2 stages, expected "
            "a multiple of --pipeline-model-parallel-size, which is 3");
}

Training TrainingOf(const std::string& args) {
  const auto run = ReadMegatronArguments(
      "x.args",
      "--num-layers 8 --hidden-size 64 --num-attention-heads 4 " + args, {});
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? run->scenario.training() : Training();
}

TEST(MegatronReaderTest, ReadsRecipes) {
  const struct {
    const char* arguments;
    const char* recipe;
  } cases[] = {
      {"--bf16", ""},
      {"--bf16 --fp8-recipe tensorwise", ""},  // without a format
      {"--bf16 --fp8-format hybrid", "fp8-delayed"},
      {"--bf16 --fp8-format hybrid --fp8-recipe tensorwise", "fp8-current"},
      {"--bf16 --fp8-format e4m3 --fp8-recipe blockwise", "fp8-blockwise"},
      {"--bf16 --fp8-format e4m3 --fp8-recipe mxfp8", "mxfp8"},
      {"--bf16 --fp4-format e2m1", "nvfp4"}};
  for (const auto& [arguments, recipe] : cases) {
    EXPECT_EQ(TrainingOf(arguments).recipe(), recipe) << arguments;
    EXPECT_EQ(TrainingOf(arguments).precision(), MIXED_BF16) << arguments;
  }
  const Training training = TrainingOf(
      "--bf16 --fp8-format hybrid --fp8-param-gather --first-last-layers-bf16 "
      "--num-layers-at-end-in-bf16 3 --use-precision-aware-optimizer "
      "--exp-avg-dtype bf16 --exp-avg-sq-dtype fp8 --main-params-dtype fp16 "
      "--main-grads-dtype bf16");
  EXPECT_TRUE(training.quantized_parameters());
  EXPECT_EQ(training.first_blocks_in_16_bits(), 1u);
  EXPECT_EQ(training.last_blocks_in_16_bits(), 3u);
  EXPECT_EQ(training.first_moment(), STATE_BF16);
  EXPECT_EQ(training.second_moment(), STATE_FP8);
  EXPECT_EQ(training.main_weights(), STATE_FP16);
  EXPECT_FALSE(training.fp32_gradients());
  EXPECT_THAT(MessageFor("--fp8-format hybrid"), HasSubstr("needs --bf16"));
  EXPECT_THAT(MessageFor("--bf16 --fp8-format hybrid --fp4-format e2m1"),
              HasSubstr("cannot be combined with --fp8-format"));
}

TEST(MegatronReaderTest, ReadsUnevenLayouts) {
  const auto read = [](const std::string& args) {
    const auto run = ReadMegatronArguments(
        "x.args",
        "--num-layers 8 --hidden-size 64 --num-attention-heads 4 " + args, {});
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? run->scenario : Scenario();
  };
  const Scenario ends = read(
      "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1 "
      "--decoder-last-pipeline-num-layers 3 --mtp-num-layers 2");
  EXPECT_EQ(ends.parallelism().decoder_first_pipeline_num_layers(), 1u);
  EXPECT_EQ(ends.parallelism().decoder_last_pipeline_num_layers(), 3u);
  EXPECT_EQ(ends.transformer().num_mtp_modules(), 2u);
  // 8 layers and the head are 9 on 3 ranks, 3 stages of one each.
  const Scenario loss = read(
      "--pipeline-model-parallel-size 3 --account-for-loss-in-pipeline-split "
      "--num-layers-per-virtual-pipeline-stage 1");
  EXPECT_TRUE(loss.parallelism().account_for_loss_in_pipeline_split());
  EXPECT_EQ(loss.parallelism().chunks(), 3u);
  EXPECT_EQ(MessageFor("--pipeline-model-parallel-size 2 "
                       "--decoder-first-pipeline-num-layers 2 "
                       "--num-layers-per-virtual-pipeline-stage 1"),
            "x.args: --decoder-first-pipeline-num-layers cannot be combined "
            "with --num-layers-per-virtual-pipeline-stage, expected "
            "--num-virtual-stages-per-pipeline-rank");
}

// Arguments that change a step are not dropped silently.
TEST(MegatronReaderTest, RefusesWhatChangesAStepAndIsNotSimulated) {
  for (const char* args :
       {"--fp16-lm-cross-entropy", "--rampup-batch-size 8 8 100",
        "--multi-latent-attention", "--enable-cuda-graph",
        "--hybrid-attention-ratio 0.5"}) {
    const std::string name =
        std::string(args).substr(0, std::string(args).find(' '));
    EXPECT_THAT(MessageFor(args), testing::StartsWith("x.args:1: " + name));
    EXPECT_THAT(MessageFor(args), HasSubstr("is not simulated ("));
    EXPECT_THAT(MessageFor(args),
                testing::EndsWith("by --leave-out " + name.substr(2)));
  }
  EXPECT_THAT(MessageFor("--recompute-method first"),
              HasSubstr("--recompute-method is first, expected block or "
                        "uniform"));
  EXPECT_THAT(MessageFor("--recompute-num-layers 0"),
              HasSubstr("--recompute-num-layers is 0, expected a whole number, "
                        "1 or more"));
  EXPECT_THAT(MessageFor("--recompute-modules core_attn norm --bf16"),
              HasSubstr("--recompute-modules is core_attn norm, expected "
                        "core_attn, mlp, moe, "));
  EXPECT_EQ(MessageFor("--recompute-modules core_attn --bf16"), "");
  // The list is at the end of eight words, which exactly fill a vector.
  EXPECT_EQ(MessageFor("--recompute-modules core_attn"), "");
}

TEST(MegatronReaderTest, ReadsWhatToRecompute) {
  const std::string rest =
      "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --bf16 "
      "--tokenizer-type NullTokenizer --vocab-size 99 --seq-length 64 "
      "--max-position-embeddings 64 --micro-batch-size 1 ";
  const auto read = [&](const std::string& args) {
    const auto run = ReadMegatronArguments("x.args", rest + args,
                                           {.num_gpus = 8, .left_out = {}});
    EXPECT_TRUE(run.ok()) << run.status();
    return models::RecomputeText(
        scenarios::RecomputeOf(run->scenario.training()));
  };
  EXPECT_EQ(read("--recompute-granularity full --recompute-method block "
                 "--recompute-num-layers 3"),
            "full:block=3");
  EXPECT_EQ(read("--recompute-granularity full --recompute-method uniform "
                 "--recompute-num-layers 2"),
            "full:uniform=2");
  EXPECT_EQ(read("--recompute-granularity full --recompute-method uniform "
                 "--recompute-num-layers 1"),
            "full");
  EXPECT_EQ(read("--recompute-granularity selective "
                 "--recompute-modules mlp core_attn"),
            "selective:core_attn+mlp");
  // Modules count only with the granularity.
  EXPECT_EQ(read("--recompute-modules mlp"), "none");
}

TEST(MegatronReaderTest, ReadsCudaGraphs) {
  const std::string rest =
      "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --bf16 "
      "--tokenizer-type NullTokenizer --vocab-size 99 --seq-length 64 "
      "--max-position-embeddings 64 --micro-batch-size 1 --num-experts 8 "
      "--moe-router-topk 2 --moe-grouped-gemm ";
  const auto read = [&](const std::string& args) {
    return ReadMegatronArguments("x.args", rest + args,
                                 {.num_gpus = 8, .left_out = {}});
  };
  const auto scopes = [&](const std::string& args) {
    const auto run = read(args);
    EXPECT_TRUE(run.ok()) << run.status();
    std::vector<int> all;
    if (!run.ok()) return all;
    for (const int scope : run->scenario.training().cuda_graph_scope()) {
      all.push_back(scope);
    }
    return all;
  };
  EXPECT_EQ(scopes("--cuda-graph-impl transformer_engine --cuda-graph-scope "
                   "attn moe_router moe_preprocess"),
            (std::vector<int>{CUDA_GRAPH_ATTN, CUDA_GRAPH_MOE_ROUTER,
                              CUDA_GRAPH_MOE_PREPROCESS}));
  EXPECT_EQ(scopes("--cuda-graph-impl local --cuda-graph-scope full_iteration"),
            std::vector<int>{CUDA_GRAPH_FULL_ITERATION});
  // The scope counts only with the program that makes graphs.
  EXPECT_TRUE(scopes("--cuda-graph-scope attn").empty());
  EXPECT_TRUE(scopes("--cuda-graph-impl none --cuda-graph-scope attn").empty());

  const auto message = [&](const std::string& args) {
    return std::string(read(args).status().message());
  };
  EXPECT_THAT(message("--cuda-graph-impl local"),
              HasSubstr("--cuda-graph-impl requires --cuda-graph-scope"));
  EXPECT_THAT(message("--cuda-graph-impl local --cuda-graph-scope first"),
              HasSubstr("--cuda-graph-scope is first, expected attn, mlp, "));
  EXPECT_THAT(message("--cuda-graph-impl transformer_engine "
                      "--cuda-graph-scope full_iteration"),
              HasSubstr("requires --cuda-graph-impl local"));

  const auto fused = read("--moe-router-fusion");
  ASSERT_TRUE(fused.ok()) << fused.status();
  EXPECT_TRUE(fused->scenario.training().moe_router_fusion());
  const auto plain = read("");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->scenario.training().has_moe_router_fusion());
  EXPECT_FALSE(plain->scenario.training().moe_router_fusion());
}

// What no argument says is Megatron-LM's default, not weir's.
TEST(MegatronReaderTest, SetsEveryFieldToMegatronsDefaults) {
  const auto run = ReadMegatronArguments(
      "x.args",
      "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --bf16 "
      "--pipeline-model-parallel-size 2 --use-distributed-optimizer "
      "--cross-entropy-loss-fusion --tokenizer-type NullTokenizer "
      "--vocab-size 99",
      {.num_gpus = 8, .left_out = {}});
  ASSERT_TRUE(run.ok()) << run.status();
  const Scenario& scenario = run->scenario;
  EXPECT_EQ(scenario.transformer().vocabulary_size(), 100u);
  EXPECT_TRUE(scenario.training().flash_attention());
  EXPECT_TRUE(scenario.training().fp32_gradients());
  EXPECT_TRUE(scenario.training().dropout());
  EXPECT_EQ(scenario.training().recompute(), RECOMPUTE_NONE);
  EXPECT_EQ(scenario.training().optimizer(), ADAM);
  EXPECT_EQ(scenario.communication().transfers(), BLOCKING);
  EXPECT_EQ(scenario.communication().gradient_reduction(), REDUCTION_BLOCKING);
  EXPECT_EQ(scenario.parallelism().order(), "tp-dp-pp");
  EXPECT_EQ(scenario.batch().microbatch_size(), 1u);
  EXPECT_EQ(scenario.batch().global_batch_size(), 4u);
  EXPECT_EQ(scenario.runtime(), "megatron-lm");
  EXPECT_THAT(
      scenario.set_figures(),
      testing::UnorderedElementsAre("runtime.unfused_cross_entropy=false",
                                    "runtime.overlaps_step_gather=false"));
}

}  // namespace weir::plan::megatron_arguments_test
