// SPDX-License-Identifier: Apache-2.0
// Tests the options that read and write files of training frameworks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::frameworks_test {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kArguments[] =
    "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 512 "
    "--max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 16 "
    "--tokenizer-type NullTokenizer --vocab-size 31999 --bf16 --lr 1e-4\n"
    "--pipeline-model-parallel-size 2 --train-iters 5 # the end\n";

std::string Read(const std::string& name) {
  std::ifstream file(TestFolder() + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

json JsonFor(const std::string& arguments) {
  const ProgramRun run = RunWeir(absl::StrCat(arguments, " --format json"));
  EXPECT_EQ(run.exit_code, 0) << arguments << "\n" << run.err;
  json output = json::parse(run.out, nullptr, false);
  EXPECT_TRUE(output.is_object()) << run.out;
  return output;
}

TEST(ImportTest, SaysWhatWasReadIgnoredAndAssumed) {
  WriteInput("x.args", kArguments);
  const ProgramRun run =
      RunWeir("simulate --megatron-args x.args --cluster dgx-h100 --nodes 1");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("note: x.args: read 11 of 13 settings of "
                                 "Megatron-LM core 0.15"));
  for (absl::string_view line : absl::StrSplit(run.err, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_THAT(run.err, HasSubstr("\n  ignored: "));
  EXPECT_THAT(run.err, HasSubstr("\n  assumed: "));
  EXPECT_THAT(run.err, Not(HasSubstr("warning:")));
  EXPECT_THAT(run.err, HasSubstr("optimizer settings (--lr)"));
  EXPECT_THAT(run.err, HasSubstr("length of the run (--train-iters)"));
  const ProgramRun quiet = RunWeir(
      "simulate --megatron-args x.args --cluster dgx-h100 --nodes 1 --quiet");
  EXPECT_EQ(quiet.err, "");
}

TEST(ImportTest, TheNoteIsOneJsonObject) {
  WriteInput("x.args", kArguments);
  const ProgramRun run = RunWeir(
      "simulate --megatron-args x.args --cluster dgx-h100 --nodes 1 "
      "--message-format json");
  const json note = json::parse(run.err, nullptr, false);
  ASSERT_TRUE(note.is_object()) << run.err;
  EXPECT_EQ(note["severity"], "note");
  EXPECT_EQ(note["file"], "x.args");
  std::string details;
  for (const json& line : note["details"]) {
    absl::StrAppend(&details, line.get<std::string>(), "\n");
  }
  EXPECT_THAT(details, HasSubstr("ignored: "));
  EXPECT_THAT(details, HasSubstr("assumed: "));
}

TEST(ImportTest, WarnsOfUnknownSettings) {
  WriteInput("x.args", absl::StrCat(kArguments, "--frobnicate 3\n"));
  const std::string command =
      "simulate --megatron-args x.args --cluster dgx-h100 --nodes 1 --quiet";
  EXPECT_EQ(RunWeir(command).err,
            "warning: x.args: ignored unknown settings, which may change the "
            "run: --frobnicate (line 3)\n");
}

TEST(ImportTest, WarnsOnlyOfParametersThatTheUserSets) {
  WriteInput("x.args",
             absl::StrCat(kArguments, "--no-masked-softmax-fusion\n"));
  const std::string command =
      "simulate --megatron-args x.args --cluster dgx-h100 --nodes 1 --quiet";
  EXPECT_EQ(RunWeir(command).err, "");
  EXPECT_EQ(RunWeir(command + " --set runtime.unfused_softmax=true").err, "");
  EXPECT_EQ(RunWeir(command + " --set runtime.unfused_softmax=false").err,
            "warning: --set runtime.unfused_softmax=false replaces "
            "--no-masked-softmax-fusion of x.args\n");
}

TEST(ImportTest, ScenarioShowTakesTheFlagsOfASimulation) {
  WriteInput("x.yaml",
             "model:\n  tensor_model_parallel_size: 4\n"
             "train:\n  global_batch_size: 16\n");
  const ProgramRun run = RunWeir(
      "scenario show --nemo x.yaml --model gpt2 --cluster dgx-h100 --nodes 1 "
      "--mbs 2 --schedule gpipe");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("model: \"gpt2\""));
  EXPECT_THAT(run.out, HasSubstr("microbatch_size: 2"));
  EXPECT_THAT(run.out, HasSubstr("schedule: \"gpipe\""));
  EXPECT_THAT(run.out, Not(HasSubstr("give --model")));
  // Without a model, the run is shown as it was read.
  const ProgramRun read =
      RunWeir("scenario show --nemo x.yaml --cluster dgx-h100 --nodes 1");
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.out, HasSubstr("# missing: the model: give --model"));
}

TEST(ImportTest, AFlagReplacesWhatOnlyAShellKnows) {
  WriteInput("x.sbatch",
             "#SBATCH -N 1 --gpus-per-node=8\nGBS=$((SLURM_NNODES * 16))\n"
             "srun torchrun pretrain_gpt.py --num-layers 8 --hidden-size 512 "
             "--num-attention-heads 8 --seq-length 512 "
             "--max-position-embeddings 512 --bf16 --tokenizer-type "
             "Llama2Tokenizer --global-batch-size $GBS\n");
  const std::string command = "simulate --sbatch x.sbatch --cluster dgx-h100";
  EXPECT_THAT(RunWeir(command).err,
              HasSubstr("does not determine: give --gbs"));
  EXPECT_EQ(JsonFor(command + " --gbs 16")["result"]["data_parallel"], 8);
}

TEST(ImportTest, ScenarioShowListsEverySetting) {
  WriteInput("x.args", kArguments);
  const ProgramRun run = RunWeir("scenario show --megatron-args x.args");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("# read: line 1: --num-layers = 8\n"));
  EXPECT_THAT(run.out,
              HasSubstr("# ignored: line 2: --train-iters = 5: length of the "
                        "run\n"));
  // The output is a scenario.
  WriteInput("x.textproto", run.out);
  EXPECT_EQ(
      JsonFor("simulate x.textproto --cluster dgx-h100 --nodes 1 --dp "
              "4")["result"]["batch_seconds"],
      JsonFor("simulate --megatron-args x.args --cluster dgx-h100 --nodes "
              "1")["result"]["batch_seconds"]);
  const json report =
      JsonFor("scenario show --megatron-args x.args")["imports"][0];
  EXPECT_EQ(report["file"], "x.args");
  EXPECT_EQ(report["read"].size(), 11u);
  EXPECT_EQ(report["ignored"][0]["reason"], "optimizer settings");
  EXPECT_EQ(report["ignored"][1]["line"], 2);
}

TEST(ImportTest, FlagsReplaceSettings) {
  WriteInput("x.args", kArguments);
  const json result = JsonFor(
      "simulate --megatron-args x.args --cluster dgx-h100 "
      "--nodes 1 --pp 4")["result"];
  EXPECT_EQ(result["pipeline_parallel"], 4);
  EXPECT_EQ(result["data_parallel"], 2);
}

TEST(ImportTest, RefusesWhatIsNotSimulatedUnlessItIsLeftOut) {
  WriteInput("x.args", absl::StrCat(kArguments, "--moe-layer-recompute\n"));
  const std::string command =
      "simulate --megatron-args x.args --cluster dgx-h100 --nodes 1";
  const ProgramRun refused = RunWeir(command);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("x.args:3: --moe-layer-recompute is not "
                                     "simulated (memory)"));
  const ProgramRun run = RunWeir(command + " --leave-out moe-layer-recompute");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("left out as requested (--moe-layer-recompute)"));
}

TEST(ImportTest, ASlurmScriptDeterminesTheNodes) {
  WriteInput("x.sbatch",
             absl::StrCat("#!/bin/bash\n#SBATCH -N 2 --gpus-per-node=8\n"
                          "ARGS=\"",
                          "--num-layers 8 --hidden-size 512 "
                          "--num-attention-heads 8 --seq-length 512 "
                          "--max-position-embeddings 512 --bf16 "
                          "--tokenizer-type Llama2Tokenizer "
                          "--global-batch-size 32\"\n"
                          "srun torchrun pretrain_gpt.py $ARGS\n"));
  const json result =
      JsonFor("simulate --sbatch x.sbatch --cluster dgx-h100")["result"];
  EXPECT_EQ(result["data_parallel"], 16);
  const ProgramRun other =
      RunWeir("simulate --sbatch x.sbatch --cluster dgx-a100 --nodes 4");
  EXPECT_EQ(other.exit_code, 0) << other.err;
}

TEST(ImportTest, DeepSpeedAddsToAnotherSource) {
  WriteInput("ds.json",
             R"({"train_micro_batch_size_per_gpu": 2, "fp16": {"enabled": true},
                 "zero_optimization": {"stage": 1}})");
  const json result = JsonFor(
      "simulate --deepspeed ds.json --model gpt2 --schedule 1f1b --seq 512 "
      "--cluster p3-16xlarge --nodes 1")["result"];
  EXPECT_EQ(result["data_parallel"], 8);
  EXPECT_EQ(result["microbatch_size"], 2);
}

TEST(ImportTest, DescribesARunOnlyOnce) {
  WriteInput("x.args", kArguments);
  WriteInput("x.yaml", "model:\n  num_layers: 4\n");
  const ProgramRun both =
      RunWeir("simulate --megatron-args x.args --nemo x.yaml");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--megatron-args and --nemo cannot be"));
}

TEST(EmitTest, FilesSimulateToTheSame) {
  WriteInput("x.args", kArguments);
  const json first = JsonFor(
      "simulate --megatron-args x.args --cluster dgx-h100 --nodes 1 "
      "--overlap-grad-reduce --emit megatron,nemo --emit-to out/run")["result"];
  for (const char* file : {"out/run.args", "out/run.yaml"}) {
    const std::string text = Read(file);
    const size_t at = text.find("# Read it back: weir ");
    ASSERT_NE(at, std::string::npos) << file;
    std::string command = text.substr(at + 21, text.find('\n', at) - at - 21);
    const ProgramRun run =
        RunWeirIn("out", absl::StrCat(command, " --format json"));
    ASSERT_EQ(run.exit_code, 0) << command << "\n" << run.err;
    EXPECT_EQ(json::parse(run.out)["result"]["batch_seconds"],
              first["batch_seconds"])
        << command;
  }
  // Replaces its own files, but not those of others.
  WriteInput("mine.args", "--num-layers 4\n");
  const ProgramRun run = RunWeir(
      "simulate --megatron-args x.args --cluster dgx-h100 --nodes 1 --emit "
      "megatron --emit-to mine");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(Read("mine.args"), "--num-layers 4\n");
}

TEST(EmitTest, WritesTheScheduleThatTorchtitanHasNoNameFor) {
  WriteInput("config.json",
             R"({"model_type": "llama", "num_hidden_layers": 32,
                 "hidden_size": 4096, "num_attention_heads": 32,
                 "num_key_value_heads": 8, "intermediate_size": 14336,
                 "vocab_size": 128256, "max_position_embeddings": 8192})");
  const std::string run =
      "simulate --model config.json --cluster dgx-h100 --nodes 1 --pp 4 --dp 2 "
      "--gbs 16 --seq 2048 --precision bf16 --fp32-gradients "
      "--flash-attention --fully-sharded --overlap-grad-reduce --runtime "
      "torchtitan ";
  const json first =
      JsonFor(run + "--schedule zb-h1 --emit torchtitan --emit-to t")["result"];
  EXPECT_THAT(Read("t.toml"),
              HasSubstr("pipeline_parallel_schedule = "
                        "\"PipelineScheduleMulti\"\n"
                        "pipeline_parallel_schedule_csv = \"t.csv\""));
  EXPECT_TRUE(std::filesystem::exists(TestFolder() + "/t.csv"));
  const json read = JsonFor(
      "simulate --torchtitan t.toml --cluster dgx-h100 "
      "--nodes 1")["result"];
  EXPECT_EQ(read["batch_seconds"], first["batch_seconds"]);
  EXPECT_EQ(read["peak_memory_bytes"], first["peak_memory_bytes"]);
}

TEST(EmitTest, WarnsOfAFrameworkThatCannotRunIt) {
  WriteInput("x.args", kArguments);
  const ProgramRun run = RunWeir(
      "simulate --megatron-args x.args --cluster dgx-h100 --nodes 1 --emit "
      "torchtitan,megatron --emit-to no");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("warning: no no.toml, as torchtitan cannot run "
                        "this plan: its models are defined in Python"));
  EXPECT_TRUE(std::filesystem::exists(TestFolder() + "/no.args"));
  EXPECT_FALSE(std::filesystem::exists(TestFolder() + "/no.toml"));
  const ProgramRun wrong = RunWeir("simulate gpipe-gpt-2.2b --emit pytorch");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--emit is pytorch, expected megatron, "
                                   "torchtitan, nemo"));
}

// Files may be read in another folder than that in which they were written.
TEST(EmitTest, NamesFilesByAbsolutePaths) {
  WriteInput("x.args", kArguments);
  const ProgramRun cluster =
      RunWeir("cluster show dgx-h100 --nodes 1 --format textproto");
  WriteInput("own_cluster.textproto", cluster.out);
  const ProgramRun run = RunWeir(
      "simulate --megatron-args x.args --cluster ./own_cluster.textproto "
      "--emit "
      "megatron --emit-to there/run");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string text = Read("there/run.args");
  const size_t at = text.find("# Read it back: weir ");
  ASSERT_NE(at, std::string::npos);
  const std::string command =
      text.substr(at + 21, text.find('\n', at) - at - 21);
  const ProgramRun read = RunWeirIn("there", command);
  EXPECT_EQ(read.exit_code, 0) << command << read.err;
  const ProgramRun init = RunWeir(
      "init --model gpt2 --cluster dgx-h100 --gpus 8 --gbs 64 --out ini");
  EXPECT_EQ(init.exit_code, 0) << init.err;
  const ProgramRun inside = RunWeirIn("ini", "simulate scenario.textproto");
  EXPECT_EQ(inside.exit_code, 0) << inside.err;
}

}  // namespace weir::cli::frameworks_test
