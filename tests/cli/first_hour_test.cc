// SPDX-License-Identifier: Apache-2.0
// What people try in their first hour, with what they must see: exit codes, key
// phrases and files. Lines never exceed 80 columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "tests/cli/task.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::first_hour_test {

using testing::HasSubstr;

constexpr char kConfig[] = R"({
  "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
  "num_attention_heads": 32, "num_key_value_heads": 8,
  "intermediate_size": 14336, "vocab_size": 128256,
  "max_position_embeddings": 8192, "tie_word_embeddings": false,
  "hidden_act": "silu", "torch_dtype": "bfloat16"
})";
constexpr char kRuns[] =
    "name,schedule,step_seconds\n"
    "monday,1f1b,9.7\n"
    "tuesday,zb-h1,9.6\n";
constexpr char kMegatronArguments[] = R"(
--num-layers 32 --hidden-size 4096 --num-attention-heads 32
--group-query-attention --num-query-groups 8 --ffn-hidden-size 14336
--seq-length 8192 --max-position-embeddings 8192 --swiglu
--normalization RMSNorm --disable-bias-linear --position-embedding-type rope
--untie-embeddings-and-output-weights --vocab-size 128256
--tensor-model-parallel-size 2 --sequence-parallel
--pipeline-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64
--bf16 --use-distributed-optimizer --overlap-grad-reduce
--tokenizer-type NullTokenizer --save-interval 100
)";
constexpr char kTorchtitanJob[] = R"(
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 8192
[parallelism]
data_parallel_shard_degree = -1
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
)";
constexpr char kSchedule[] = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";

std::vector<Task> Tasks() {
  return {
      {"FirstExample",
       "compare llama-3-70b-64-h100 --schedule "
       "gpipe,1f1b,interleaved-1f1b,zb-h1,zb-v",
       0,
       {"64 GPUs", "step time", "TFLOP/s/GPU", "bubble", "peak memory",
        "memory per GPU: 79.1 GiB", "gpipe: 352 GiB over the limit",
        "fastest that fits: zb-h1", "formula model"}},
      {"OneScheduleInDetail",
       "simulate llama-3-70b-64-h100 --schedule zb-h1",
       0,
       {"tokens/s/GPU", "MFU (model)", "mean over GPUs", "tp comm", "dp comm",
        "optimizer_state"}},
      {"AllColumns",
       "compare llama-3-70b-64-h100 --schedule 1f1b --wide",
       0,
       {"tokens/s/GPU", "MFU", "90 % interval", "compute", "tp comm", "p2p",
        "dp comm"},
       {},
       {},
       {},
       true},
      {"ChosenColumns",
       "compare llama-3-70b-64-h100 --schedule 1f1b,zb-h1 --columns "
       "schedule,tokens/s/gpu,mfu",
       0,
       {"schedule  tokens/s/GPU     MFU\n"}},
      {"UnknownColumn",
       "compare llama-3-70b-64-h100 --columns mfux",
       2,
       {},
       {"--columns is mfux, expected columns of schedule",
        "did you mean mfu?"}},
      {"OwnModel",
       "simulate --model config.json --cluster dgx-h100 --nodes 1 --tp 2 "
       "--dp 4 --gbs 64 --flash-attention --precision bf16 "
       "--use-distributed-optimizer --schedule 1f1b",
       0,
       {"step time", "tokens/s/GPU"}},
      {"Parameters", "model show config.json", 0, {"8,030,261,248 parameters"}},
      {"ActiveParametersOfExperts",
       "model show mixtral-8x7b",
       0,
       {"46,702,792,704 parameters, 12.9 B of them active per token"}},
      {"Start",
       "init --model config.json --cluster dgx-a100 --gpus 16 --seq 4096 "
       "--gbs 128 --out start",
       0,
       {"a layout that fits: ", "weir simulate start/scenario.textproto"},
       {"wrote start/model.textproto"},
       {"start/model.textproto", "start/cluster.textproto",
        "start/scenario.textproto"}},
      {"StartIsLoaded",
       "init --model config.json --cluster dgx-a100 --gpus 16 --seq 4096 "
       "--gbs 128 --out start > log && $WEIR simulate start/scenario.textproto",
       0,
       {"16 GPUs", "step time"}},
      {"ClusterToEdit",
       "cluster show dgx-h100 --format textproto > mine.textproto && "
       "grep -q 'bytes per second' mine.textproto && echo commented",
       0,
       {"commented"},
       {},
       {"mine.textproto"}},
      {"OwnCluster",
       "cluster show dgx-h100 --format textproto > mine.textproto && $WEIR "
       "cluster show mine.textproto",
       0,
       {"8 GPUs (h100-sxm)"}},
      {"ProfileToEdit",
       "profile show h100-sxm --format textproto",
       0,
       {"proto-message: weir.DeviceProfile", "matrix_rates"},
       {},
       {},
       {},
       true},
      {"Picture",
       "simulate --schedule 1f1b --costs f=1,b=2 --pp 4 --microbatches 8 "
       "--trace t.svg",
       0,
       {"step time"},
       {"t.svg"},
       {"t.svg"}},
      {"DrawSchedule",
       "schedule show zb-h1 --pp 4 --microbatches 8",
       0,
       {"rank 3 |"}},
      {"OwnSchedule", "schedule lint own.csv", 0, {}, {}, {}, {}, true},
      {"OwnRuns",
       "validate --measured runs.csv --scenario llama-2-70b-dgx-h100 --chunks "
       "1",
       0,
       {"2 measured runs", "step_seconds"}},
      {"Why",
       "explain llama-3-70b-64-h100 --schedule 1f1b",
       0,
       {"time of a step on the busiest GPU", "feed_forward_gemm",
        "parameters, by"}},
      {"Sweep",
       "sweep --scenario llama-3-70b-64-h100 --schedule 1f1b --chunks 1 "
       "--method fast --grid tp=4,8 --grid pp=4,8 --grid dp=2 --out grid "
       "> log && $WEIR collect grid --pivot tp,pp --metric peak_memory",
       0,
       {"best peak memory of the points that fit", "tp \\ pp"}},
      {"SlowGpu",
       "simulate llama-3-70b-64-h100 --schedule 1f1b --slow gpu17=0.5 --ranks "
       "0,1 --replica 0 --trace t.pftrace",
       0,
       {"step time"},
       {},
       {"t.pftrace"}},
      {"SlowLinkMisspelled",
       "simulate llama-3-70b-64-h100 --slow link:node3.nick2=0.5",
       2,
       {},
       {"did you mean node3.nic2?"}},
      {"Plan",
       "plan --model gpt2-medium --cluster dgx-a100 --nodes 1 --gbs 16",
       0,
       {"1f1b"},
       {},
       {},
       {},
       true},
      {"SyntheticCosts",
       "compare --schedule gpipe,1f1b,zb-h1 --costs f=1,i=1,w=1 --pp 4 "
       "--microbatches 8",
       0,
       {"fastest: zb-h1"}},
      {"StaleWeights",
       "compare pipedream-2bw-gpt-2.2b --schedule gpipe,pipedream-2bw",
       0,
       {"fastest that fits: pipedream-2bw"}},
      {"JsonForScripts",
       "simulate llama-3-70b-64-h100 --schedule 1f1b --format json",
       0,
       {"\"breakdown\"", "\"bubble_seconds\"", "\"tokens_per_second_per_gpu\"",
        "\"flops_per_second_per_gpu\""},
       {},
       {},
       {},
       true},
      {"CsvForSpreadsheets",
       "compare llama-3-70b-64-h100 --schedule 1f1b --format csv",
       0,
       {"tensor_communication_seconds", "bubble_seconds"},
       {},
       {},
       {},
       true},
      {"TooLittleMemory",
       "simulate llama-3-70b-64-h100 --schedule gpipe",
       1,
       {"352 GiB over"}},
      {"UnknownSchedule",
       "simulate llama-3-70b-64-h100 --schedule 1f1bb",
       2,
       {},
       {"did you mean"}},
      {"DerivedReplicas",
       "simulate --model llama-3-70b --cluster dgx-h100 --nodes 8 --tp 4 --pp "
       "8 --gbs 128",
       0,
       {"tensor 4 x pipeline 8 x data 2 = 64 GPUs"}},
      {"SizesThatDoNotDivide",
       "simulate --model llama-3-70b --cluster dgx-h100 --nodes 8 --tp 8 --pp "
       "3 --gbs 128",
       2,
       {},
       {"--tp 8 x --pp 3 = 24, expected a divisor",
        "64 GPUs; nearest: --pp 2"}},
      {"IdleGpus",
       "simulate --model llama-3-70b --cluster dgx-h100 --nodes 8 --tp 8 --pp "
       "4 --dp 1 --gbs 128",
       0,
       {"32 GPUs"},
       {"32 of the cluster's 64 GPUs are idle: --dp 2 uses 64"}},
      {"TooFewGpus",
       "simulate --model llama-3-70b --cluster dgx-h100 --nodes 1 --tp 8 --pp "
       "4 --dp 2 --gbs 128",
       2,
       {},
       {"needs 64 GPUs, but the cluster has 8; --nodes 8 has enough"}},
      {"NumberOfGpus",
       "simulate --model llama-3-70b --cluster dgx-h100 --gpus 64 --tp 8 --pp "
       "8 --gbs 128",
       0,
       {"tensor 8 x pipeline 8 x data 1 = 64 GPUs"}},
      {"ChunksBySchedule",
       "compare llama-3-70b-64-h100 --schedule "
       "1f1b,interleaved-1f1b:v=2,interleaved-1f1b:v=5,zb-v",
       0,
       {"1f1b", "interleaved-1f1b v=2", "interleaved-1f1b v=5", "zb-v v=2"}},
      {"UnitsOfTokensAndBytes",
       "plan --model gpt2-medium --cluster dgx-a100 --nodes 1 --gbs 16 --seq "
       "1k --memory-limit 30G",
       0,
       {"memory limit: 30.0 GiB"}},
      {"DefaultsOfPapers",
       "simulate --model llama-3-70b --cluster dgx-h100 --nodes 8 --tp 8 --pp "
       "8 --gbs 128 --defaults megatron-2021",
       1,
       {"defaults: megatron-2021"}},
      {"ModernDefaults",
       "simulate --model config.json --cluster dgx-h100 --nodes 1 --tp 2 --pp "
       "2 --gbs 64",
       0,
       {"defaults: modern (bf16, fused attention"}},
      {"MegatronArguments",
       "simulate --megatron-args run.args --cluster dgx-h100 --nodes 1",
       0,
       {"tensor 2 x pipeline 2 x data 2 = 8 GPUs"},
       {"settings of Megatron-LM", "--save-interval"}},
      {"MegatronArgumentsBackAndForth",
       "simulate --megatron-args run.args --cluster dgx-h100 --nodes 1 --emit "
       "megatron --emit-to again > log && $WEIR simulate --megatron-args "
       "again.args --cluster dgx-h100 --nodes 1",
       0,
       {"tensor 2 x pipeline 2 x data 2 = 8 GPUs"},
       {},
       {"again.args"}},
      {"TorchtitanJob",
       "simulate --torchtitan job.toml --cluster dgx-h100 --nodes 1",
       0,
       {"8 GPUs", "tokens/s/GPU"}},
      {"ModelInAFolder",
       "model show hf",
       0,
       {"hf: ", "8,030,261,248 parameters"}},
      {"MisspelledKeyOfAModel",
       "model show misspelled.json",
       2,
       {},
       {"num_hiden_layers", "did you mean num_hidden_layers?"}},
      {"NameOfAnotherProgram",
       "simulate llama-3-70b-64-h100 --pipeline 4",
       2,
       {},
       {"unknown option --pipeline; did you mean --pp?"}},
      {"ImplausibleLink",
       "cluster show dgx-h100 --format textproto > own.textproto && sed -i "
       "'s/bytes_per_second: 450000000000.*/bytes_per_second: 450/; "
       "s/bytes_per_second: 4.5e.*11.*/bytes_per_second: 450/' own.textproto "
       "&& $WEIR simulate --model gpt2 --cluster own.textproto --tp 4 --gbs 64",
       0,
       {},
       {"450 bytes per second, which is implausible; 450 GB/s is 450e9"}},
      {"PlanWithCosts",
       "plan --model llama-3.1-8b --cluster dgx-h100 --nodes 1 --gbs 64 "
       "--tokens 1T --price-per-gpu-hour 2.5 --time-limit 20",
       0,
       {"tp  pp  dp", "tokens/s/GPU", "GPU-hours", "price",
        "plans that differ from plan 1 in one choice"}},
      {"PlanToFiles",
       "plan --model llama-3.1-8b --cluster dgx-h100 --nodes 1 --gbs 64 "
       "--schedule 1f1b --mbs 1 --plans 1 --out plans > log && $WEIR simulate "
       "plans/plan-1.textproto",
       0,
       {"8 GPUs", "step time"},
       {},
       {"plans/plan-1.textproto", "plans/plan-1.args"}},
      {"NoPlanFits",
       "plan --model llama-3.1-405b --cluster dgx-h100 --nodes 1 --gbs 64 "
       "--schedule 1f1b",
       1,
       {},
       {"nothing fits 71.2 GiB",
        "fit without offloading on 104 GPUs (--nodes 13)"}},
      {"WhatIsMissingHere", "doctor", 0, {"SimGrid", "README.md work"}},
  };
}

class FirstHourTest : public testing::TestWithParam<Task> {
 protected:
  void SetUp() override {
    WriteInput("config.json", kConfig);
    WriteInput("runs.csv", kRuns);
    WriteInput("own.csv", kSchedule);
    WriteInput("run.args", kMegatronArguments);
    WriteInput("job.toml", kTorchtitanJob);
    WriteInput(
        "misspelled.json",
        absl::StrReplaceAll(kConfig, {{"hidden_layers", "hiden_layers"}}));
    std::filesystem::create_directory(absl::StrCat(TestFolder(), "/hf"));
    WriteInput("hf/config.json", kConfig);
  }
};

TEST_P(FirstHourTest, Works) {
  const ProgramRun run = RunTask(GetParam());
  if (GetParam().wide) return;
  for (absl::string_view line : absl::StrSplit(run.out, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, FirstHourTest, testing::ValuesIn(Tasks()),
                         NameOf);

// The README shows current output and a current picture.
TEST(ReadmeTest, ShowsTheFirstExample) {
  const ProgramRun run = RunWeir(
      "compare llama-3-70b-64-h100 --schedule "
      "gpipe,1f1b,interleaved-1f1b,zb-h1,zb-v");
  const auto readme = ReadFile(WEIR_SOURCE_DIR "/README.md");
  ASSERT_TRUE(readme.ok()) << readme.status();
  EXPECT_THAT(*readme, HasSubstr(run.out));
}

}  // namespace weir::cli::first_hour_test
