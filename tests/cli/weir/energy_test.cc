// SPDX-License-Identifier: Apache-2.0
// Runs weir energy, and --energy of simulate and compare, as users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"
#include "tests/results/import/sample_trace.h"

namespace weir::cli::energy_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A forward and a backward of two stages at two clocks.
std::string ProfileFile() {
  return WriteInput("profile.csv",
                    "stage,instruction,frequency,time,energy\n"
                    "0,forward,1400,1,300\n0,forward,700,2,200\n"
                    "0,backward,1400,2,600\n0,backward,700,4,400\n"
                    "1,forward,1400,2,600\n1,forward,700,4,400\n"
                    "1,backward,1400,4,1200\n1,backward,700,8,800\n");
}

nlohmann::json JsonOf(const std::string& arguments) {
  const ProgramRun run = RunWeir(arguments + " --format json");
  EXPECT_LE(run.exit_code, 1) << run.err;
  return run.exit_code <= 1 ? nlohmann::json::parse(run.out) : nlohmann::json();
}

TEST(EnergyCommandTest, PlansClocksAndWritesThem) {
  const std::string profile = ProfileFile();
  const std::string command =
      absl::StrCat("energy ", profile, " --blocking-power 50 --microbatches 4");
  const auto json = JsonOf(command + " --stragglers 1.5,2")["result"];
  EXPECT_NEAR(json["baseline"]["seconds"].get<double>(), 27, 1e-9);
  EXPECT_NEAR(json["baseline"]["joules"].get<double>(), 11700, 1e-6);
  EXPECT_NEAR(json["fastest"]["joules"].get<double>(), 10350, 1e-6);
  EXPECT_EQ(json["stragglers"].size(), 2u);
  const ProgramRun run = RunWeir(command + " --deadlines 60 --out clocks.csv");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("least energy"));
  EXPECT_THAT(ReadFile(TestFolder() + "/clocks.csv").value_or(""),
              StartsWith("rank,action,clock_mhz,seconds,joules\n"
                         "0,0F0,700,2,200\n"));
}

TEST(EnergyCommandTest, DeadlinesComeFromAFile) {
  const std::string profile = ProfileFile();
  WriteInput("deadlines.csv", "time,energy\n20,1\n27,1\n40,1\n");
  const ProgramRun run =
      RunWeir(absl::StrCat("energy ", profile,
                           " --blocking-power 50 --microbatches 4 --deadlines "
                           "deadlines.csv --format csv"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\n40,"), HasSubstr("\n27,"),
                             Not(HasSubstr("\n20,"))));
  EXPECT_THAT(run.err, HasSubstr("1 of 3 are shorter"));
}

TEST(EnergyCommandTest, OtherSchedulesArePlannedToo) {
  const std::string profile = ProfileFile();
  for (const char* schedule : {"gpipe", "1f1b"}) {
    const auto json = JsonOf(absl::StrCat("energy ", profile,
                                          " --blocking-power 50 --schedule ",
                                          schedule))["result"];
    EXPECT_LE(json["fastest"]["joules"].get<double>(),
              json["baseline"]["joules"].get<double>());
  }
}

TEST(EnergyCommandTest, BadFlagsAreNamed) {
  const std::string profile = ProfileFile();
  for (const auto& [flags, message] :
       {std::pair("", "--blocking-power"),
        std::pair("--blocking-power 50 --schedule pipedream", "has no flush"),
        std::pair("--blocking-power 50 --schedule zb-h1",
                  "which the profile does not have"),
        std::pair("--blocking-power 50 --chunks 3", "--chunks is 3"),
        std::pair("--blocking-power 50 --microbatches 1000000",
                  "--microbatches is 1000000, expected at most 10000"),
        std::pair("--blocking-power 50 --stragglers 0.5",
                  "--stragglers is 0.5"),
        std::pair("--blocking-power 50 --time-scale 1e300",
                  "--time-scale is 1e+300"),
        std::pair("--blocking-power 50 --unit-seconds 1.5",
                  "--unit-seconds is 1.5, expected at most 1"),
        std::pair("--microbatches 4",
                  "--blocking-power is missing, expected WATTS"),
        std::pair("--blocking-power 50 --deadlines x", "--deadlines is x")}) {
    const ProgramRun run =
        RunWeir(absl::StrCat("energy ", profile, " ", flags));
    EXPECT_EQ(run.exit_code, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr(message)) << flags;
  }
  EXPECT_EQ(RunWeir("energy nonesuch.csv --blocking-power 50").exit_code, 2);
}

constexpr char kStep[] =
    "--model gpt2 --cluster dgx-h100 --nodes 1 --pp 4 --dp 2 --gbs 16";

TEST(StepEnergyTest, SimulateAndCompareShowTheEnergyOfAStep) {
  const auto plain = JsonOf(absl::StrCat("simulate --schedule 1f1b ", kStep));
  const auto json = JsonOf(absl::StrCat("simulate --schedule 1f1b ", kStep,
                                        " --energy h100-sxm --tokens 1e9 "
                                        "--energy-price 0.1 --carbon 400"));
  EXPECT_FALSE(plain["result"].contains("energy"));
  const auto energy = json["result"]["energy"];
  const double seconds = json["result"]["batch_seconds"].get<double>();
  const double joules = energy["joules_per_step"].get<double>();
  EXPECT_EQ(seconds, plain["result"]["batch_seconds"].get<double>());
  EXPECT_NEAR(energy["watts_per_gpu"].get<double>(), joules / 8 / seconds,
              1e-6);
  EXPECT_NEAR(energy["run_price"].get<double>(),
              0.1 * energy["run_kwh"].get<double>(), 1e-9);
  EXPECT_NEAR(energy["run_kg_co2"].get<double>(),
              0.4 * energy["run_kwh"].get<double>(), 1e-9);
  const ProgramRun table = RunWeir(absl::StrCat(
      "compare --schedule gpipe,1f1b ", kStep, " --energy h100-sxm"));
  EXPECT_THAT(table.out, HasSubstr("energy (H100 SXM)"));
  const auto both = JsonOf(absl::StrCat("compare --schedule gpipe,1f1b ", kStep,
                                        " --energy h100-sxm"));
  EXPECT_NEAR(both["results"][1]["energy"]["joules_per_step"].get<double>(),
              joules, 1e-9 * joules);
}

TEST(StepEnergyTest, BadFlagsAreNamed) {
  for (const auto& [flags, message] :
       {std::pair("--energy nonesuch", "nonesuch"),
        std::pair("--energy h100-sxm --format csv", "expected table or json"),
        std::pair("--energy h100-sxm --pue 0.5", "--pue is 0.5"),
        std::pair("--energy h100-sxm --method fast", "--method full"),
        std::pair("--energy h100-sxm --carbon 3", "require --tokens"),
        std::pair("--energy h100-sxm --energy-price 1", "require --tokens"),
        std::pair("--energy h100-sxm --pue 1.2", "require --tokens"),
        std::pair("--carbon 3", "need --energy")}) {
    const ProgramRun run =
        RunWeir(absl::StrCat("simulate --schedule 1f1b ", kStep, " ", flags));
    EXPECT_EQ(run.exit_code, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr(message)) << flags;
  }
}

TEST(StepEnergyTest, TokensNeedTokensOfAStep) {
  for (const char* command : {"simulate --schedule 1f1b", "compare"}) {
    const ProgramRun run = RunWeir(
        absl::StrCat(command, " --costs f=1,b=2 --pp 4 --microbatches 8 ",
                     "--energy h100-sxm --tokens 1e9"));
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_THAT(run.err, HasSubstr("no known number of tokens"));
  }
}

TEST(StepEnergyTest, APowerModelOfAnotherDeviceIsAWarning) {
  for (const char* command :
       {"simulate --schedule 1f1b ", "compare --schedule gpipe,1f1b "}) {
    const auto errors = [&](const char* power) {
      return RunWeir(absl::StrCat(command, kStep, " --energy ", power)).err;
    };
    EXPECT_THAT(errors("a100-sxm"),
                HasSubstr("the power model is of A100-SXM4, the cluster has "
                          "H100-SXM5-80GB"));
    EXPECT_THAT(errors("h100-sxm"), Not(HasSubstr("power model")));
  }
}

// MLPerf Training v4.0: GPT-3 175B on 64 nodes of 8 H100 (NeMo, FP8) took
// 10.764 s and, at 6,849 W a node, 4.72 MJ a step.
TEST(StepEnergyTest, Gpt3OnFiveHundredAndTwelveGpusTakesThePublishedEnergy) {
  const auto result = JsonOf(
      "simulate --model gpt3-175b --cluster dgx-h100 --nodes 64 --tp 4 --pp 8 "
      "--chunks 6 --schedule interleaved-1f1b --gbs 2048 --mbs 2 --seq 2048 "
      "--precision fp8-delayed --sequence-parallel --distributed-optimizer "
      "--flash-attention --dropout=false --runtime nemo "
      "--energy h100-sxm")["result"];
  EXPECT_NEAR(result["batch_seconds"].get<double>(), 10.764, 0.1 * 10.764);
  EXPECT_NEAR(result["energy"]["joules_per_step"].get<double>(), 4.72e6,
              0.1 * 4.72e6);
  EXPECT_NEAR(result["energy"]["watts_per_gpu"].get<double>(), 6849 / 8.0,
              0.1 * 6849 / 8);
}

TEST(MeasuredEnergyTest, GzippedTablesAreTheSame) {
  const std::string profile = ProfileFile();
  const auto text = ReadFile(absl::StrCat(TestFolder(), "/", profile));
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string bytes = results::Gzip(*text);
  const std::string gzipped = WriteInput("profile.csv.gz", bytes);
  const std::string options = " --blocking-power 50 --microbatches 4";
  EXPECT_EQ(
      JsonOf(absl::StrCat("energy ", gzipped, options))["result"]["baseline"],
      JsonOf(absl::StrCat("energy ", profile, options))["result"]["baseline"]);
  const std::string cut = WriteInput("cut.csv.gz", bytes.substr(0, 40));
  EXPECT_THAT(RunWeir(absl::StrCat("energy ", cut, options)).err,
              HasSubstr("the compressed data is cut off"));
}

// Measured passes: a simulation with their times takes the energy that weir
// energy computes for the same clocks.
TEST(MeasuredEnergyTest, IsThatOfTheProfile) {
  const std::string profile = ProfileFile();
  const std::string common = absl::StrCat(profile, " --blocking-power 50 ");
  for (const int clock : {1400, 700}) {
    const std::string costs = absl::StrCat("costs", clock, ".textproto");
    const auto planned = JsonOf(absl::StrCat(
        "energy ", common, "--microbatches 4 --deadlines 54 --clock ", clock,
        " --costs ", costs))["result"];
    const auto& expected =
        clock == 1400 ? planned["baseline"] : planned["frontier"][0];
    const auto run = JsonOf(absl::StrCat(
        "simulate --schedule 1f1b --pp 2 --microbatches 4 --costs ", costs,
        " --energy ", common, "--clock ", clock))["result"];
    EXPECT_NEAR(run["batch_seconds"].get<double>(),
                expected["seconds"].get<double>(), 1e-9 * 54);
    EXPECT_NEAR(run["energy"]["joules_per_step"].get<double>(),
                expected["joules"].get<double>(), 1e-9 * 20000);
  }
}

TEST(MeasuredEnergyTest, BadFlagsAreNamed) {
  const std::string profile = ProfileFile();
  const std::string step =
      "simulate --schedule 1f1b --costs f=1,b=2 --pp 2 --microbatches 4 ";
  for (const auto& [flags, message] :
       std::vector<std::pair<std::string, std::string>>{
           {step + "--energy " + profile,
            "expected --blocking-power with the watts of a GPU that waits"},
           {step + "--energy " + profile + " --blocking-power 50 --clock 900",
            "--clock is 900, but stage 0 was not measured at it, expected one "
            "of 2 clocks from 700 to 1400 MHz"},
           {step + "--blocking-power 50",
            "--blocking-power and --clock need --energy with a .csv"},
           {step + "--clock 900",
            "--blocking-power and --clock need --energy with a .csv"},
           {step + "--energy h100-sxm --clock 900",
            "--energy is h100-sxm, expected a .csv"},
           {"simulate --schedule 1f1b --costs f=1,b=2 --pp 4 --microbatches 4 "
            "--blocking-power 50 --energy " +
                profile,
            "the run has a pass of stage 2, expected the stages of the "
            "profile, 0 to 1"},
           {"compare --schedule 1f1b,gpipe --costs f=1,b=2 --pp 2 "
            "--microbatches 4 --energy " +
                profile,
            "expected a power model, or weir simulate"},
           {"energy " + profile + " --blocking-power 50 --clock 700",
            "--clock is given without --costs"}}) {
    const ProgramRun run = RunWeir(flags);
    EXPECT_EQ(run.exit_code, 2) << flags << run.err;
    EXPECT_THAT(run.err, HasSubstr(message)) << flags;
  }
}

TEST(EnergyCommandTest, PowerCapsAreShown) {
  const ProgramRun run =
      RunWeir(absl::StrCat("energy ", ProfileFile(),
                           " --blocking-power 50 --microbatches 4 "
                           "--power-cap 150"));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("power cap"),
                    HasSubstr("Within an average of 150 W for the GPUs "
                              "of a stage, no plan is faster than")));
}

TEST(EnergyObjectiveTest, PlansShowTheirEnergy) {
  const std::string command =
      "plan --model gpt2 --cluster dgx-h100 --nodes 1 --gbs 16 --seq 512 "
      "--schedule 1f1b --tp 1,2 --pp 1,2 --mbs 1 --recompute none "
      "--gpus 2,4 --objective energy ";
  const ProgramRun missing = RunWeir(command);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("power_model is missing"));
  const auto plans = JsonOf(command + "--energy h100-sxm")["result"]["plans"];
  ASSERT_GT(plans.size(), 1u);
  for (size_t i = 1; i < plans.size(); ++i) {
    EXPECT_GE(plans[i]["joules_per_step"].get<double>(),
              plans[i - 1]["joules_per_step"].get<double>());
  }
  EXPECT_NEAR(plans[0]["joules_per_token"].get<double>(),
              plans[0]["joules_per_step"].get<double>() / (16 * 512),
              1e-9 * plans[0]["joules_per_token"].get<double>());
  EXPECT_THAT(RunWeir(command + "--energy h100-sxm").out,
              AllOf(HasSubstr("energy"), HasSubstr("W/GPU")));
}

// Users see the clock that a power cap leads to, in both outputs.
TEST(EnergyObjectiveTest, TheClockOfAPowerCapIsShown) {
  const std::string command =
      "plan --model gpt2 --cluster dgx-a100 --nodes 1 --gbs 16 --seq 512 "
      "--schedule 1f1b --tp 1 --pp 1,2 --mbs 1 --recompute none --gpus 2 "
      "--objective energy --energy a100-sxm --node-power-cap 4000 ";
  constexpr char kClock[] = "GPUs compute at 1200 MHz, 90.4 % of their speed";
  const ProgramRun table = RunWeir(command);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.err, HasSubstr(kClock));
  EXPECT_THAT(JsonOf(command)["warnings"].dump(), HasSubstr(kClock));
}

// MLPerf Training v5.0, Llama 3.1 405B on H100: with the factor of 512 GPUs
// (55.143 s), step times of 2,432, 2,560 and 8,192 GPUs follow within 2 %, and
// with its delay in seconds the 95th and 99th percentile of 8,192 within 1 %
// (tools/accuracy/mlperf_steps.py).
TEST(MlperfStepsTest, StepTimesOfOtherSystemsFollowFromOne) {
  const auto seconds = [](int nodes, int batch) {
    return JsonOf(absl::StrCat(
        "simulate --model llama-3.1-405b --cluster dgx-h100 --nodes ", nodes,
        " --gbs ", batch,
        " --tp 8 --pp 8 --cp 2 --chunks 8 --mbs 1 --seq 8192 --schedule "
        "interleaved-1f1b --sequence-parallel --distributed-optimizer "
        "--account-for-embedding-in-pipeline-split "
        "--account-for-loss-in-pipeline-split --precision fp8-delayed "
        "--runtime nemo --method fast"))["result"]["batch_seconds"]
        .get<double>();
  };
  const double factor = 55.143 / seconds(64, 1152);
  EXPECT_NEAR(factor, 1, 0.1);
  EXPECT_NEAR(factor * seconds(304, 1216), 12.712, 0.02 * 12.712);
  EXPECT_NEAR(factor * seconds(320, 1120), 11.173, 0.02 * 11.173);
  const double median = factor * seconds(1024, 1536);
  EXPECT_NEAR(median, 5.179, 0.02 * 5.179);
  const double delay_95 = 0.002 * 55.143, delay_99 = 0.0042 * 55.143;
  EXPECT_NEAR(1 + delay_95 / median, 1.021, 0.01);
  EXPECT_NEAR(1 + delay_99 / median, 1.048, 0.01);
}

// Degraded networks, as users state them.
TEST(DegradedNetworkTest, FlagsSlowDownAStep) {
  const std::string command =
      "simulate --model gpt2 --cluster dgx-h100 --nodes 4 --gbs 32 --mbs 1 "
      "--seq 512 --tp 1 --pp 1 --dp 32 --schedule 1f1b --topology fat-tree "
      "--nodes-per-leaf 2 ";
  const auto seconds = [&](const std::string& flags) {
    return JsonOf(command + flags)["result"]["batch_seconds"].get<double>();
  };
  const double plain = seconds("");
  EXPECT_EQ(seconds("--routing adaptive"), plain);
  EXPECT_THAT(
      JsonOf(command + "--failed leaf:0,node1.nic3 --background fabric=0.1 "
                       "--routing ecmp")["result"]["features"],
      testing::IsSupersetOf({"ECMP routing", "2 failed parts",
                             "traffic of other jobs on 1 part"}));
  EXPECT_GT(seconds("--background fabric=0.95"), plain);
  EXPECT_GT(seconds("--failed leaf:0=15"), plain);
  EXPECT_GE(seconds("--routing ecmp --uplinks-per-leaf 2"), plain);
  EXPECT_GE(seconds("--failed node1.nic3"), plain * (1 - 1e-9));
  const ProgramRun show = RunWeir(
      "cluster show dgx-h100 --nodes 4 --topology fat-tree --nodes-per-leaf 2 "
      "--routing ecmp");
  EXPECT_THAT(show.out, HasSubstr("routing: ECMP")) << show.err;
}

}  // namespace weir::cli::energy_test
