// SPDX-License-Identifier: Apache-2.0
// Tests the output of "weir plan" and the files that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::plan_test {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kConfig[] =
    R"({"model_type": "llama", "num_hidden_layers": 8, "hidden_size": 512,
        "num_attention_heads": 8, "intermediate_size": 1408,
        "vocab_size": 32000, "max_position_embeddings": 2048,
        "rope_theta": 500000.0})";

constexpr char kPlan[] =
    "plan --model config.json --cluster dgx-h100 --nodes 1 --gbs 16 --seq 512 "
    "--tp 1 --pp 4 --mbs 1 --precision bf16 --flash-attention --jobs 1 ";

json ResultOf(const std::string& before, const std::string& arguments) {
  const ProgramRun run =
      RunWeirAfter(before, absl::StrCat(arguments, " --format json"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  json output = json::parse(run.out, nullptr, false);
  EXPECT_TRUE(output.is_object()) << run.out;
  return output["result"];
}

// Returns the command that the head of the file lists, without "weir".
std::string ReadBackCommand(const std::string& name) {
  std::ifstream file(TestFolder() + "/" + name);
  std::string line;
  while (std::getline(file, line)) {
    absl::string_view command = line;
    if (absl::ConsumePrefix(&command, "# Read it back: weir ")) {
      return std::string(command);
    }
  }
  ADD_FAILURE() << name;
  return "";
}

// All files simulate to the planned result, also from another folder.
TEST(PlanFilesTest, SimulateToThePlannedSecondsFromTheirOwnFolder) {
  WriteInput("config.json", kConfig);
  const json plans =
      ResultOf("", absl::StrCat(kPlan,
                                "--plans 2 --emit megatron,nemo --out "
                                "plans"))["plans"];
  ASSERT_GE(plans.size(), 1u);
  for (size_t i = 0; i < plans.size(); ++i) {
    const std::string name = absl::StrCat("plan-", i + 1);
    for (const std::string& arguments :
         {absl::StrCat("simulate ", name, ".textproto"),
          ReadBackCommand("plans/" + name + ".args"),
          ReadBackCommand("plans/" + name + ".yaml")}) {
      const json result = ResultOf("cd plans &&", arguments);
      EXPECT_EQ(result["batch_seconds"], plans[i]["batch_seconds"])
          << arguments;
      EXPECT_EQ(result["peak_memory_bytes"], plans[i]["peak_memory_bytes"])
          << arguments;
    }
  }
}

TEST(PlanTest, ATimeLimitIsNoInterrupt) {
  WriteInput("config.json", kConfig);
  const ProgramRun none = RunWeir(absl::StrCat(kPlan, "--time-limit 0.001"));
  EXPECT_EQ(none.exit_code, 1) << none.err;
  EXPECT_THAT(none.err, HasSubstr("ended before a plan that fits was found"));
  const json result = ResultOf("", absl::StrCat(kPlan, "--time-limit 1e6"));
  EXPECT_EQ(result["end"], "complete");
  EXPECT_GE(result["plans"].size(), 1u);
}

// Seeds of planners leave to the defaults what candidates set.
TEST(PlanTest, ListsNoLayoutTwice) {
  WriteInput("config.json", kConfig);
  const json plans = ResultOf(
      "",
      "plan --model config.json --cluster dgx-h100 --nodes 1 --gbs 16 --seq "
      "512 --tp 1 --pp 1,2 --mbs 1 --schedule 1f1b --recompute none --plans 12 "
      "--jobs 1")["plans"];
  std::set<std::string> layouts;
  for (const json& plan : plans) {
    EXPECT_TRUE(layouts
                    .insert(absl::StrCat(plan["pipeline"].get<int>(), " ",
                                         plan["layers"].get<std::string>(), " ",
                                         plan["sharding"].get<std::string>()))
                    .second)
        << plan;
  }
  EXPECT_GE(layouts.size(), 4u);
}

TEST(PlanTest, RefusesSizesThatNoLayoutHas) {
  WriteInput("config.json", kConfig);
  const auto message = [](absl::string_view more) {
    const ProgramRun run = RunWeir(absl::StrCat(kPlan, more));
    EXPECT_EQ(run.exit_code, 2) << more;
    return run.err;
  };
  EXPECT_THAT(message("--data-replicate 3"),
              HasSubstr("--data-replicate is 3, expected a divisor of the "
                        "data-parallel size of a layout that shards something: "
                        "2"));
  EXPECT_THAT(message("--data-replicate 2 --sharding none"),
              HasSubstr("--data-replicate is 2, expected 1: no layout shards "
                        "anything"));
  EXPECT_THAT(message("--etp 2"),
              HasSubstr("--etp is 2, expected 1: the model has no experts"));
}

TEST(PlanTest, ShowsTheCostOfTokens) {
  WriteInput("config.json", kConfig);
  const json plan = ResultOf(
      "",
      absl::StrCat(kPlan, "--tokens 2T --price-per-gpu-hour 3"))["plans"][0];
  EXPECT_EQ(plan["tokens"], 2e12);
  EXPECT_NEAR(plan["price"].get<double>() / plan["gpu_hours"].get<double>(), 3,
              1e-9);
  EXPECT_EQ(plan["flops_formula"], "model");
  const ProgramRun bad = RunWeir(absl::StrCat(kPlan, "--tokens 2Q"));
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err,
              HasSubstr("expected a number of tokens from 1 to 1e18, as in"
                        " 300B"));
}

class StalePlanFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(Path(""));
    std::filesystem::create_directory(Path(""));
    WriteInput("config.json", kConfig);
  }
  static std::string Path(const std::string& name) {
    return absl::StrCat(TestFolder(), "/stale/", name);
  }
  static bool Exists(const std::string& name) {
    return std::filesystem::exists(Path(name));
  }
  static ProgramRun Run(absl::string_view arguments) {
    return RunWeir(absl::StrCat(kPlan, arguments, " --out stale"));
  }
};

TEST_F(StalePlanFilesTest, OfAnEarlierRunAreRemoved) {
  ASSERT_EQ(Run("--plans 3").exit_code, 0);
  for (const char* name : {"plan-1.args", "plan-2.textproto", "plan-2.args",
                           "plan-2.csv", "plan-3.textproto"}) {
    ASSERT_TRUE(Exists(name)) << name;
  }
  // Megatron-LM cannot run this plan, so it has no .args file.
  const ProgramRun run = Run("--plans 1 --schedule zb-h1");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("(1 plan); removed 7 files of an earlier run"));
  EXPECT_TRUE(Exists("plan-1.textproto"));
  EXPECT_TRUE(Exists("plan-1.csv"));
  const auto folder = std::filesystem::directory_iterator(Path(""));
  EXPECT_EQ(std::distance(begin(folder), end(folder)), 2);
}

TEST_F(StalePlanFilesTest, OfOthersStay) {
  for (const std::string force : {"", " --force"}) {
    WriteInput("stale/plan-2.textproto", "# no mark\n");
    WriteInput("stale/plan-2.args", "--num-layers 4\n");
    WriteInput("stale/plan-3.args", "--num-layers 4\n");
    WriteInput("stale/notes.csv", "1\n");
    const ProgramRun run = Run("--plans 1" + force);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, Not(HasSubstr("removed")));
    for (const char* name :
         {"plan-2.textproto", "plan-2.args", "plan-3.args", "notes.csv"}) {
      EXPECT_TRUE(Exists(name)) << name;
    }
  }
}

TEST(PlanFilesTest, MegatronArgumentsStandInsteadOfAScenario) {
  WriteInput("x.args", "--num-layers 4 --hidden-size 64\n");
  const ProgramRun both = RunWeir(
      "simulate gpt3-175b-selene --megatron-args x.args --cluster dgx-h100");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("cannot be combined"));
  WriteInput("y.args", "--pipeline-model-parallel-size 3\n");
  const ProgramRun odd =
      RunWeir("simulate --megatron-args y.args --cluster dgx-h100 --nodes 1");
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_THAT(odd.err, HasSubstr("expected a divisor of the cluster's 8 GPUs"));
}

TEST(PlanTableTest, SaysWhichSchedulesWereConsidered) {
  WriteInput("config.json", kConfig);
  const ProgramRun usual = RunWeir(kPlan);
  EXPECT_THAT(absl::StrReplaceAll(usual.out, {{"\n  ", " "}}),
              HasSubstr("schedules considered: 1f1b, interleaved-1f1b, as the "
                        "runtime megatron-lm executes only these (--schedule "
                        "all: every schedule)\n"));
  EXPECT_THAT(usual.out, Not(HasSubstr("(!)")));
  const ProgramRun named =
      RunWeir(absl::StrCat(kPlan, "--schedule zb-h1 --out plans"));
  EXPECT_THAT(named.out, HasSubstr("schedules considered: zb-h1\n"));
  EXPECT_THAT(named.out, HasSubstr("zb-h1 (!)"));
  EXPECT_THAT(named.err, HasSubstr("no plan-1.args, as Megatron-LM cannot"));
  EXPECT_FALSE(std::filesystem::exists(TestFolder() + "/plans/plan-1.args"));
  EXPECT_TRUE(std::filesystem::exists(TestFolder() + "/plans/plan-1.csv"));
}

TEST(PlanStreamTest, PrintsBetterPlansAndThenTheResultOnOneLineEach) {
  WriteInput("config.json", kConfig);
  const ProgramRun run = RunWeir(absl::StrCat(kPlan, "--format json --stream"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> lines =
      absl::StrSplit(run.out, '\n', absl::SkipWhitespace());
  ASSERT_GE(lines.size(), 2);
  double seconds = 1e9;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const json plan = json::parse(lines[i], nullptr, false)["improved"];
    EXPECT_LT(plan["batch_seconds"].get<double>(), seconds);
    seconds = plan["batch_seconds"].get<double>();
  }
  const json plans =
      json::parse(lines.back(), nullptr, false)["result"]["plans"];
  EXPECT_NEAR(plans[0]["batch_seconds"].get<double>() / seconds, 1, 1e-9);
  const ProgramRun table = RunWeir(absl::StrCat(kPlan, "--stream"));
  EXPECT_EQ(table.exit_code, 2);
  EXPECT_THAT(table.err, HasSubstr("--format json"));
}

TEST(PlanTableTest, SaysWhatOfAGpuAPlanMayUse) {
  WriteInput("config.json", kConfig);
  const auto limit_with = [](absl::string_view margin) {
    const json plans = ResultOf("", absl::StrCat(kPlan, margin));
    return plans["memory_limit_bytes"].get<double>();
  };
  const double all = limit_with("--memory-margin 0%");
  EXPECT_NEAR(limit_with("--memory-margin 5%") / all, 0.95, 1e-9);
  // By default, the margin is the upper part of the interval of memory.
  EXPECT_GT(limit_with("") / all, 0.85);
  EXPECT_LT(limit_with("") / all, 0.95);
  for (const char* bad : {"5", "-1%", "96%", "x%"}) {
    const ProgramRun run =
        RunWeir(absl::StrCat(kPlan, "--memory-margin ", bad));
    EXPECT_EQ(run.exit_code, 2) << bad;
    EXPECT_THAT(run.err, HasSubstr("--memory-margin is "));
  }
}

}  // namespace weir::cli::plan_test
