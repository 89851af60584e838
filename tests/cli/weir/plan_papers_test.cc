// SPDX-License-Identifier: Apache-2.0
// Tests "weir plan --algorithm", the papers' planners.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::plan_papers_test {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Returns a graph of four layers of 1, 2, 3 and 4 ms and their input.
std::string Graph() {
  std::string text =
      "node1 -- Input0 -- forward_compute_time=9.000, "
      "backward_compute_time=9.000, activation_size=8.0, "
      "parameter_size=0.000\n";
  for (int node = 2; node <= 5; ++node) {
    absl::StrAppend(&text, "node", node,
                    " -- Linear -- forward_compute_time=", node - 1,
                    ", backward_compute_time=0, activation_size=1000000.0, "
                    "parameter_size=0.000\n\tnode",
                    node - 1, " -- node", node, "\n");
  }
  return text;
}

constexpr char kFlags[] =
    "plan --algorithm pipedream --graph graph.txt --format json ";

TEST(PlanTest, PatienceMayBeNoNumber) {
  const char* flags =
      "plan --model gpt2 --cluster dgx-h100 --gpus 2 --gbs 4 --tp 1 --pp 2 "
      "--mbs 1 --chunks 1 --schedule 1f1b --recompute none --even-layers "
      "--quiet --patience ";
  EXPECT_EQ(RunWeir(absl::StrCat(flags, "0")).exit_code, 0);
  for (const char* bad : {"1,2", "-1", "many"}) {
    const ProgramRun run = RunWeir(absl::StrCat(flags, bad));
    EXPECT_EQ(run.exit_code, 2) << bad;
    EXPECT_THAT(run.err, HasSubstr("--patience is "));
  }
}

// Checks that omitted plans are reported, and not as a lack of memory.
TEST(PlanTest, APlanThatTheLinterRefusesIsNamed) {
  const ProgramRun run = RunWeir(
      "plan --model gpt2 --cluster dgx-h100 --gpus 4 --gbs 64 --tp 1 --pp 4 "
      "--mbs 2 --chunks 1 --schedule spp --recompute none --even-layers "
      "--quiet");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("rejected: "));
  EXPECT_THAT(run.err, Not(HasSubstr("nothing fits")));
}

TEST(PlanPapersTest, APlanOfAProfileGraphAsJson) {
  WriteInput("graph.txt", Graph());
  const ProgramRun run =
      RunWeir(absl::StrCat(kFlags, "--machines 2 --bandwidth 1e9 --straight"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  const auto result = nlohmann::json::parse(run.out)["result"];
  EXPECT_NEAR(result["pipeline_time_seconds"], 0.006, 1e-12);
  EXPECT_NEAR(result["single_stage_time_seconds"], 0.010, 1e-12);
  EXPECT_EQ(result["num_states"], 4);
  ASSERT_EQ(result["stages"].size(), 2u);
  EXPECT_EQ(result["stages"][0]["nodes"],
            (nlohmann::json{"node1 Input0", "node2 Linear", "node3 Linear",
                            "node4 Linear"}));
  EXPECT_EQ(result["stages"][1]["replicas"], 1);
  // Without --straight, layers without parameters are replicated at no cost.
  const ProgramRun replicated =
      RunWeir(absl::StrCat(kFlags, "--machines 2,2 --bandwidth 1e9,1e8"));
  EXPECT_NEAR(
      nlohmann::json::parse(replicated.out)["result"]["pipeline_time_seconds"],
      0.0025, 1e-12);
}

TEST(PlanPapersTest, TransfersCountWithACompressionRatio) {
  WriteInput("graph.txt", Graph());
  const std::string flags =
      absl::StrCat(kFlags, "--machines 2 --bandwidth 1e8 --straight ");
  const auto seconds = [&](const std::string& more) {
    const ProgramRun run = RunWeir(flags + more);
    return double(
        nlohmann::json::parse(run.out)["result"]["pipeline_time_seconds"]);
  };
  EXPECT_NEAR(seconds("--activation-compression-ratio 1"), 0.020, 1e-12);
  EXPECT_NEAR(seconds("--activation-compression-ratio 2"), 0.010, 1e-12);
  EXPECT_NEAR(seconds("--paper-formula"), 0.020, 1e-12);
}

TEST(PlanPapersTest, AGraphThatFitsNowhereIsANegativeVerdict) {
  WriteInput("graph.txt", Graph());
  const std::string flags =
      absl::StrCat(kFlags, "--machines 2 --bandwidth 1e9 --memory-limit ");
  const ProgramRun none = RunWeir(flags + "1MB");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.out, IsEmpty());
  EXPECT_THAT(none.err,
              HasSubstr("graph.txt: nothing fits 977 KiB: the smallest plan "
                        "found needs 1.91 MiB: raise --memory-limit to 2000000 "
                        "bytes"));
  EXPECT_EQ(RunWeir(flags + "2MB").exit_code, 0);
  // The memory count of the published code, with its own flag names.
  const ProgramRun published = RunWeir(
      "plan --algorithm pipedream --profile-filename graph.txt --format json "
      "--all-num-machines 2 --network-bandwidths 1e9 --memory-size 1e6 "
      "--use-memory-constraint");
  EXPECT_EQ(published.exit_code, 0) << published.err;
  EXPECT_THAT(published.err, HasSubstr("stage 0 needs 3.81 MiB for one"));
  const auto json = nlohmann::json::parse(published.out);
  EXPECT_NEAR(json["result"]["pipeline_time_seconds"], 0.005, 1e-12);
  EXPECT_EQ(json["warnings"].size(), 1u);
}

TEST(PlanPapersTest, NodesInNoStageAreSaid) {
  WriteInput("graph.txt", Graph() +
                              "node9 -- Lonely -- forward_compute_time=1, "
                              "backward_compute_time=1, activation_size=0, "
                              "parameter_size=0\n");
  const ProgramRun run =
      RunWeir(absl::StrCat(kFlags, "--machines 2 --bandwidth 1e9"));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("nodes in no stage, as no edges connect them "
                                 "to the first source: node9 Lonely\n"));
}

TEST(PlanPapersTest, NamesFileFieldFoundAndExpected) {
  WriteInput("graph.txt", Graph());
  WriteInput("cycle.txt", Graph() + "\tnode5 -- node2\n\tnode5 -- node7\n");
  const auto fails = [](const std::string& arguments, const char* message) {
    const ProgramRun run = RunWeir(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_THAT(run.err, StartsWith("error: "));
    EXPECT_THAT(run.err, HasSubstr(message)) << arguments;
  };
  const std::string flags = kFlags;
  fails(flags + "--machines 4,4 --bandwidth 1e9",
        "graph.txt: bandwidth has 1 entries, expected 2, as many as machines");
  fails(flags, "weir plan: --machines is missing");
  fails(flags + "--machines 4 --bandwidth x", "--bandwidth");
  fails(flags + "--machines 5 --bandwidth 1e9 --straight",
        "graph.txt: no plan: a straight pipeline needs an antichain for every "
        "machine, found 4 antichains");
  fails(
      "plan --algorithm pipedream --graph cycle.txt --machines 2 "
      "--bandwidth 1e9",
      "node7 is not defined");
  fails(
      "plan --algorithm pipedream --graph none.txt --machines 2 "
      "--bandwidth 1e9",
      "none.txt");
  fails("plan --graph graph.txt --machines 2 --bandwidth 1e9",
        "--algorithm is missing, expected pipedream with --graph");
  fails("plan --algorithm best pipedream-2bw-gpt-2.2b",
        "--algorithm: found \"best\", expected one of pipedream, ");
  fails("plan --algorithm pipedream pipedream-2bw-gpt-2.2b --straight",
        "--straight is given without --graph");
  fails("plan --algorithm pipedream given-costs-1f1b",
        "cannot be combined with costs");
}

TEST(PlanPapersTest, AScenariosPlanIsSimulated) {
  const ProgramRun run = RunWeir(
      "plan pipedream-2bw-gpt-2.2b --algorithm pipedream-2bw --gpus 16 "
      "--format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto answer = nlohmann::json::parse(run.out)["result"]["answers"][0];
  EXPECT_EQ(answer["algorithm"], "pipedream-2bw");
  EXPECT_EQ(answer["simulated"]["lint_errors"], 0);
  EXPECT_GT(answer["simulated"]["batch_seconds"], 0);
  int num_devices = 0;
  for (const auto& stage : answer["stages"]) {
    num_devices += int(stage["replicas"]);
  }
  EXPECT_EQ(num_devices, 16);
}

TEST(PlanPapersTest, AllAreComparedOnOneScenario) {
  const ProgramRun run = RunWeir(
      "plan pipedream-2bw-gpt-2.2b --algorithm all --gpus 8 --format csv");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\npipedream,"));
  EXPECT_THAT(run.out, HasSubstr("\npipedream-2bw,"));
}

TEST(PlanPapersTest, WhereNothingFitsTheVerdictSaysWhatWould) {
  const ProgramRun run =
      RunWeir("plan gpt3-175b-selene --algorithm dapple --memory-limit 10GiB");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("dapple: nothing fits 10.0 GiB: the smallest "
                                 "plan found needs "));
  EXPECT_THAT(run.err, HasSubstr("raise --memory-limit to "));
  EXPECT_EQ(RunWeir("plan gpt3-175b-selene --algorithm dapple "
                    "--memory-limit 23.4GiB")
                .exit_code,
            0);
}

TEST(PlanPapersTest, FlagsOfTheSearchAreRefused) {
  const ProgramRun run = RunWeir(
      "plan pipedream-2bw-gpt-2.2b --algorithm dapple --pp 3 --explain");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--pp is given with --algorithm"));
  EXPECT_THAT(run.err, HasSubstr("--explain is given with --algorithm"));
  WriteInput("graph.txt", Graph());
  const ProgramRun graph = RunWeir(
      "plan --algorithm pipedream --graph graph.txt --machines 2 "
      "--bandwidth 1e9 --format csv --out plans");
  EXPECT_EQ(graph.exit_code, 2);
  EXPECT_THAT(graph.err, HasSubstr("--format is csv"));
  EXPECT_THAT(graph.err, HasSubstr("--out is given with --graph"));
}

}  // namespace weir::cli::plan_papers_test
