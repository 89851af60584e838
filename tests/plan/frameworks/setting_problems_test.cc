// SPDX-License-Identifier: Apache-2.0
// Settings that are unknown, have a wrong type, or are not given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plan/frameworks/imported_run.h"

namespace weir::plan::setting_problems_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr char kModel[] =
    "--num-layers 8 --hidden-size 64 --num-attention-heads 4 "
    "--max-position-embeddings 64 --seq-length 64\n";

absl::StatusOr<ImportedRun> ReadArguments(const std::string& more,
                                          const ImportContext& context = {}) {
  return ReadMegatronArguments("x.args", kModel + more, context);
}

template <typename T>
std::string MessageOf(const absl::StatusOr<T>& run) {
  return std::string(run.status().message());
}

TEST(SettingProblemsTest, AMisspelledArgumentIsAnError) {
  EXPECT_EQ(MessageOf(ReadArguments("--swigluu")),
            "x.args:2: --swigluu is unknown; did you mean --swiglu? "
            "(--leave-out swigluu ignores it)");
  EXPECT_THAT(MessageOf(ReadArguments("--num-query-group 8")),
              HasSubstr("did you mean --num-query-groups?"));
  EXPECT_THAT(MessageOf(ReadArguments("--tensor-parallel-size 8")),
              HasSubstr("did you mean --tensor-model-parallel-size?"));
  // It resembles one that is refused.
  EXPECT_THAT(MessageOf(ReadArguments("--fp8-formatt hybrid")),
              HasSubstr("did you mean --fp8-format?"));
  ImportContext context;
  context.left_out = {"swigluu"};
  EXPECT_TRUE(ReadArguments("--swigluu", context).ok());
  // It resembles one without effect.
  EXPECT_TRUE(ReadArguments("--log-intervall 5").ok());
}

TEST(SettingProblemsTest, NestedKeysAreCheckedAlsoInFamiliesWithoutEffect) {
  EXPECT_THAT(
      MessageOf(ReadNemoSettings("x.yaml", "model:\n  num_layer: 4\n", {})),
      HasSubstr("x.yaml:2: model.num_layer is unknown; did you mean "
                "model.num_layers?"));
  EXPECT_THAT(MessageOf(ReadNemoSettings(
                  "x.yaml", "ddp:\n  overlap_grad_reduc: true\n", {})),
              HasSubstr("did you mean ddp.overlap_grad_reduce?"));
  EXPECT_THAT(MessageOf(ReadDeepSpeedConfig(
                  "ds.json", R"({"bf16": {"enable": true}})", {}, {})),
              HasSubstr("did you mean bf16.enabled?"));
  // Real options that resemble others.
  const auto run = ReadNemoSettings(
      "x.yaml",
      "model:\n  tp_comm_overlap_rs: true\n  tp_comm_overlap_ag: true", {});
  EXPECT_TRUE(run.ok()) << run.status();
}

TEST(SettingProblemsTest, OtherUnknownSettingsAreNamedApart) {
  const auto run = ReadArguments("--frobnicate 3 --lr 1e-4");
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(UnknownSettingsOf(run->report),
            "x.args: ignored unknown settings, which may change the run: "
            "--frobnicate (line 2)");
  EXPECT_THAT(SummaryOf(run->report), Not(HasSubstr("frobnicate")));
  EXPECT_EQ(UnknownSettingsOf(ReadArguments("--lr 1e-4")->report), "");
}

TEST(SettingProblemsTest, TheSummaryHasALineForEachKind) {
  std::string more = "--frobnicate 3 --bf16";
  for (const char* name : {"save", "load", "lr", "min-lr", "log-interval",
                           "train-iters", "data-path", "split", "seed"}) {
    absl::StrAppend(&more, " --", name, " 1");
  }
  const auto run = ReadArguments(more);
  ASSERT_TRUE(run.ok()) << run.status();
  const std::string summary = SummaryOf(run->report);
  EXPECT_THAT(summary, HasSubstr("x.args: read 6 of 16 settings of Megatron"));
  EXPECT_THAT(summary, HasSubstr("\n  ignored: "));
  EXPECT_THAT(summary, HasSubstr("\n  assumed: fused attention"));
}

TEST(SettingProblemsTest, TypesAreChecked) {
  const auto run = ReadDeepSpeedConfig(
      "ds.json",
      "{\n\"bf16\": {\"enabled\": \"yes\"},\n"
      "\"fp16\": true,\n"
      "\"zero_optimization\": {\"stage\": \"1\",\n"
      "  \"overlap_comm\": 1, \"reduce_bucket_size\": \"5e8\"},\n"
      "\"train_batch_size\": [8],\n"
      "\"optimizer\": {\"type\": 5}\n}",
      {}, {});
  const std::vector<std::string> lines = absl::StrSplit(MessageOf(run), '\n');
  EXPECT_THAT(
      lines,
      UnorderedElementsAre(
          "ds.json:2: bf16.enabled is \"yes\", expected true or false",
          "ds.json:3: fp16 is true, expected a section with settings",
          "ds.json:4: zero_optimization.stage is \"1\", expected a whole "
          "number",
          "ds.json:5: zero_optimization.overlap_comm is 1, expected true or "
          "false",
          "ds.json:5: zero_optimization.reduce_bucket_size is \"5e8\", "
          "expected a number",
          "ds.json:6: train_batch_size is [...], expected a whole number",
          "ds.json:7: optimizer.type is 5, expected a string"));
  EXPECT_THAT(
      MessageOf(ReadTorchtitanJob("x.toml",
                                  "[model]\nname = \"llama3\"\nflavor = "
                                  "\"8B\"\n[compile]\nenable = \"yes\"\n"
                                  "[activation_checkpoint]\nmode = \"none\"\n",
                                  {})),
      testing::Eq("x.toml:5: compile.enable is \"yes\", expected true or "
                  "false"));
}

TEST(SettingProblemsTest, BatchSizesOfDeepSpeedMustAgree) {
  Scenario base;
  base.mutable_parallelism()->set_data(2);
  const std::string text =
      "{\"train_batch_size\": 128,\n\"train_micro_batch_size_per_gpu\": 1,"
      "\n\"gradient_accumulation_steps\": 32}";
  EXPECT_EQ(MessageOf(ReadDeepSpeedConfig("ds.json", text, {}, base)),
            "ds.json:1: train_batch_size is 128, expected 64, which is "
            "train_micro_batch_size_per_gpu (1) x gradient_accumulation_steps "
            "(32) x data-parallel ranks (2)");
  base.mutable_parallelism()->set_data(4);
  EXPECT_TRUE(ReadDeepSpeedConfig("ds.json", text, {}, base).ok());
  // Flags replace a size.
  base.mutable_parallelism()->set_data(2);
  ImportContext context;
  context.overrides.mutable_batch()->set_global_batch_size(64);
  EXPECT_TRUE(ReadDeepSpeedConfig("ds.json", text, context, base).ok());
}

TEST(SettingProblemsTest, OverlapsOfNemoAreOffUnlessGiven) {
  const std::string model =
      "model:\n  tensor_model_parallel_size: 2\n"
      "  pipeline_model_parallel_size: 4\n"
      "  virtual_pipeline_model_parallel_size: 2\n"
      "  sequence_parallel: true\nddp:\n  use_distributed_optimizer: true\n";
  const auto run = ReadNemoSettings("x.yaml", model, {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->scenario.set_figures(),
              Contains("runtime.pipelines_tensor_collectives=false"));
  EXPECT_THAT(run->scenario.set_figures(),
              Contains("runtime.overlaps_step_gather=false"));
  EXPECT_EQ(run->scenario.communication().transfers(), BLOCKING);
  EXPECT_EQ(run->scenario.communication().gradient_reduction(),
            REDUCTION_BLOCKING);
  EXPECT_THAT(run->report.notes,
              Contains(HasSubstr("off, since not given: model.tp_comm_overlap, "
                                 "model.overlap_p2p_comm")));
  // A section for overlap chooses them, and replaces those of the model.
  const auto chosen =
      ReadNemoSettings("x.yaml",
                       absl::StrCat("comm_overlap:\n  tp_comm_overlap: true\n",
                                    model, "  overlap_grad_reduce: false\n"),
                       {});
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  for (const std::string& figure : chosen->scenario.set_figures()) {
    EXPECT_THAT(figure, Not(HasSubstr("overlap")));
    EXPECT_THAT(figure, Not(HasSubstr("pipelines")));
  }
  EXPECT_EQ(chosen->scenario.communication().transfers(), OVERLAPPED);
  EXPECT_EQ(chosen->scenario.communication().gradient_reduction(),
            REDUCTION_OVERLAPPED);
}

TEST(SettingProblemsTest, ConsequencesOfAReportedSettingAreNotReported) {
  const std::string two = "--num-virtual-stages-per-pipeline-rank 2 ";
  EXPECT_EQ(MessageOf(ReadArguments(
                two + "--pipeline-model-parallel-size four --bf16 --fp16")),
            "x.args:2: --pipeline-model-parallel-size is four, expected a "
            "whole number, 1 or more\nx.args: --fp16 cannot be combined with "
            "--bf16");
  EXPECT_THAT(MessageOf(ReadArguments(two + "--pipeline-model-parallel-siz 4")),
              Not(HasSubstr("\n")));
  EXPECT_THAT(MessageOf(ReadArguments(two + "--pipeline-model-parallel-size")),
              Not(HasSubstr("\n")));
  // NeMo's names of the arguments.
  EXPECT_EQ(MessageOf(ReadNemoSettings(
                "x.yaml", "model.virtual_pipeline_model_parallel_size=2", {})),
            "x.yaml: model.pipeline_model_parallel_size is 1, expected at "
            "least 2 with 2 virtual stages per rank");
}

TEST(SettingProblemsTest, FlagsReplaceWhatOnlyAShellKnows) {
  const std::string script =
      "GBS=$((SLURM_NNODES * 16))\nsrun -N 2 --gpus-per-node 8 python "
      "pretrain_gpt.py \\\n --num-layers 8 --hidden-size 64 "
      "--num-attention-heads 4 --global-batch-size $GBS\n";
  EXPECT_EQ(MessageOf(ReadSlurmScript("x.sh", script, {})),
            "x.sh:3: --global-batch-size is $((SLURM_NNODES * 16)), which the "
            "file does not determine: give --gbs");
  ImportContext context;
  context.overrides.mutable_batch()->set_global_batch_size(128);
  const auto run = ReadSlurmScript("x.sh", script, context);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->scenario.batch().global_batch_size(), 128u);
}

TEST(SettingProblemsTest, TheModelIsOnlyMissingWithoutAModel) {
  const std::string text = "model:\n  tensor_model_parallel_size: 4\n";
  EXPECT_THAT(ReadNemoSettings("x.yaml", text, {})->report.missing,
              ElementsAre("the model: give --model"));
  ImportContext context;
  context.overrides.set_model("gpt2");
  EXPECT_THAT(ReadNemoSettings("x.yaml", text, context)->report.missing,
              IsEmpty());
}

}  // namespace weir::plan::setting_problems_test
