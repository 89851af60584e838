// SPDX-License-Identifier: Apache-2.0
// Tests from outside what users with measured runs do: replace parameters,
// calibrate them, and report FLOP by the convention of a paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::measured_runs_test {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kGpt2[] =
    " --model gpt2 --cluster dgx-a100 --nodes 1 --gbs 16 --schedule 1f1b ";

Json ResultOf(const std::string& arguments) {
  const ProgramRun run = RunWeir(arguments + " --format json");
  EXPECT_LE(run.exit_code, 1) << run.err;
  return Json::parse(run.out);
}

TEST(MeasuredRunsTest, SetReplacesParametersOfEveryCommand) {
  const std::string set =
      "--set memory_efficiency=0.5+-5% --set "
      "runtime.unfused_softmax=true,cluster.fabric.latency_seconds=1e-5 ";
  const Json before = ResultOf(absl::StrCat("simulate", kGpt2, "--pp 2"));
  const Json after = ResultOf(absl::StrCat("simulate", kGpt2, "--pp 2 ", set));
  EXPECT_GT(after["result"]["batch_seconds"].get<double>(),
            1.05 * before["result"]["batch_seconds"].get<double>());
  EXPECT_THAT(after["config"].get<std::string>(),
              AllOf(HasSubstr("set_figures: \"memory_efficiency=0.5+-5%\""),
                    HasSubstr("\"runtime.unfused_softmax=true\"")));
  EXPECT_THAT(after["warnings"].dump(),
              HasSubstr("--set runtime.unfused_softmax=true replaces false"));

  const Json compared = ResultOf(
      absl::StrCat("compare", kGpt2, "--pp 2 --schedule gpipe,1f1b ", set));
  EXPECT_DOUBLE_EQ(compared["results"][1]["batch_seconds"].get<double>(),
                   after["result"]["batch_seconds"].get<double>());
  const Json explained =
      ResultOf(absl::StrCat("explain", kGpt2, "--pp 2 ", set));
  EXPECT_DOUBLE_EQ(explained["result"]["batch_seconds"].get<double>(),
                   after["result"]["batch_seconds"].get<double>());
  const Json planned = ResultOf(absl::StrCat(
      "plan", kGpt2, "--gpus 2 --pp 2 --mbs 1 --recompute none ", set));
  const Json& plan = planned["result"]["plans"][0];
  EXPECT_THAT(plan["scenario"].get<std::string>(),
              HasSubstr("memory_efficiency=0.5+-5%"));
  WriteInput("set.csv", "pp,step_seconds\n2,1\n");
  const Json validated =
      ResultOf(absl::StrCat("validate --measured set.csv", kGpt2, set));
  EXPECT_NEAR(validated["result"]["numbers"][0]["predicted"].get<double>(),
              after["result"]["batch_seconds"].get<double>(), 1e-9);
  const ProgramRun swept = RunWeir(absl::StrCat(
      "sweep", kGpt2, set, "--grid parallelism.pipeline=2 --out sweep-set"));
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  const ProgramRun collected = RunWeir("collect sweep-set --format json");
  EXPECT_THAT(collected.out,
              HasSubstr(absl::StrCat(
                  after["result"]["batch_seconds"].dump().substr(0, 8))));
}

TEST(MeasuredRunsTest, BadSettingsNameFlagFigureAndValue) {
  const ProgramRun unknown = RunWeir(
      absl::StrCat("simulate", kGpt2, "--pp 2 --set sustained_rate=0.8"));
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err,
              HasSubstr("--set is sustained_rate=0.8, expected the name of a "
                        "parameter (weir profile show); "
                        "did you mean gemm.sustained_rate?"));
  const ProgramRun form =
      RunWeir(absl::StrCat("simulate", kGpt2, "--pp 2 --set 0.8"));
  EXPECT_EQ(form.exit_code, 2);
  EXPECT_THAT(form.err, HasSubstr("--set is 0.8, expected PARAMETER=VALUE"));
}

// Writes measurements of a machine whose update takes twice the time, which the
// predictions consider uncertain.
std::string WriteRuns(int num_runs) {
  std::string table = "pp,tp,dp,mbs,seq,step_seconds\n";
  for (int run = 0; run < num_runs; ++run) {
    const std::vector<int> sizes = {1 << run % 3, 1 << run / 3 % 2,
                                    1 << run / 6 % 2, 1 + run % 2,
                                    run % 4 == 0 ? 512 : 1024};
    const Json real = ResultOf(absl::StrCat(
        "simulate", kGpt2, "--set runtime.update_seconds=2e-2 --pp ", sizes[0],
        " --tp ", sizes[1], " --dp ", sizes[2], " --mbs ", sizes[3], " --seq ",
        sizes[4]));
    absl::StrAppend(&table, sizes[0], ",", sizes[1], ",", sizes[2], ",",
                    sizes[3], ",", sizes[4], ",",
                    real["result"]["batch_seconds"].get<double>(), "\n");
  }
  std::string name = absl::StrCat("runs", num_runs, ".csv");
  WriteInput(name, table);
  return name;
}

TEST(MeasuredRunsTest, CalibrationProposesAndWritesAnOverlay) {
  const std::string runs = WriteRuns(10);
  const std::string assumed = " --set runtime.update_seconds=1e-2+-100% ";
  const ProgramRun run =
      RunWeir(absl::StrCat("validate --measured ", runs, kGpt2, assumed,
                           "--calibrate --overlay mine.textproto"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("proposed parameters, from 10 runs"),
                             HasSubstr("apply: --set runtime.update_seconds="),
                             HasSubstr("mean |error| of runs left out: ")));
  EXPECT_THAT(run.err, HasSubstr("wrote mine.runtime.textproto for --runtime"));
  const Json calibrated = ResultOf(absl::StrCat(
      "validate --measured ", runs, kGpt2, "--runtime mine.runtime.textproto"));
  EXPECT_LT(calibrated["result"]["statistics"][0]["mean_absolute_error"]
                .get<double>(),
            0.01);
  const Json json = ResultOf(absl::StrCat("validate --measured ", runs, kGpt2,
                                          assumed, "--calibrate"));
  EXPECT_EQ(json["result"]["calibration"]["parameters"][0]["path"],
            "runtime.update_seconds");

  const ProgramRun off =
      RunWeir(absl::StrCat("validate --measured ", runs, kGpt2, assumed));
  EXPECT_THAT(off.out, Not(HasSubstr("proposed")));
}

TEST(MeasuredRunsTest, FewRunsAndMissingFlagsSaySo) {
  const std::string runs = WriteRuns(3);
  const ProgramRun few =
      RunWeir(absl::StrCat("validate --measured ", runs, kGpt2, "--calibrate"));
  EXPECT_EQ(few.exit_code, 0) << few.err;
  EXPECT_THAT(few.out, HasSubstr("no parameters are proposed: 3 runs have"));
  const ProgramRun alone =
      RunWeir(absl::StrCat("validate --measured ", runs, kGpt2, "--overlay x"));
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--overlay requires --calibrate"));
}

TEST(MeasuredRunsTest, OutputNamesTheFormulaOfFlops) {
  const std::string simulate = absl::StrCat("simulate", kGpt2, "--pp 2 ");
  EXPECT_THAT(RunWeir(simulate).out, AllOf(HasSubstr("MFU (model)"),
                                           HasSubstr("TFLOP/s/GPU (model)")));
  EXPECT_THAT(RunWeir(simulate + "--flops palm-causal").out,
              HasSubstr("MFU (palm-causal)"));
  EXPECT_EQ(ResultOf(simulate + "--flops megatron")["result"]["flops_formula"],
            "megatron");
  EXPECT_THAT(RunWeir(absl::StrCat("compare", kGpt2,
                                   "--pp 2 --schedule gpipe,1f1b --flops "
                                   "hardware"))
                  .out,
              HasSubstr("MFU: formula hardware"));
  EXPECT_THAT(
      RunWeir(absl::StrCat("explain", kGpt2, "--pp 2 --flops palm")).out,
      HasSubstr("MFU (palm)"));
  const std::string plan =
      absl::StrCat("plan", kGpt2, "--gpus 2 --pp 2 --mbs 1 --recompute none ");
  EXPECT_THAT(RunWeir(plan).out, Not(HasSubstr("MFU")));
  EXPECT_THAT(RunWeir(plan + "--flops palm --wide").out,
              HasSubstr("MFU (palm)"));
  EXPECT_EQ(RunWeir(simulate + "--flops model72").exit_code, 2);
  EXPECT_EQ(RunWeir(simulate + "--method fast --flops palm").exit_code, 2);
}

TEST(MeasuredRunsTest, TablesMayUseAnyFormula) {
  const Json result =
      ResultOf(absl::StrCat("simulate", kGpt2, "--pp 2 --dp 1"))["result"];
  const double seconds = result["batch_seconds"];
  std::string table = "pp,flops_formula,tflops_per_gpu,mfu\n";
  for (const char* formula : {"model", "model-causal", "megatron", "palm",
                              "palm-causal", "hardware", "model72"}) {
    absl::StrAppend(&table, "2,", formula, ",100,0.3\n");
  }
  WriteInput("formulas.csv", table);
  const Json numbers =
      ResultOf(absl::StrCat("validate --measured formulas.csv", kGpt2,
                            "--dp 1"))["result"]["numbers"];
  ASSERT_EQ(numbers.size(), 14);
  const Json& counts = result["flops_per_batch"];
  const char* keys[] = {"model",       "model_causal", "megatron", "palm",
                        "palm_causal", "hardware",     "megatron"};
  for (size_t i = 0; i < 7; ++i) {
    const double tflops = counts[keys[i]].get<double>() / seconds / 2 / 1e12;
    EXPECT_NEAR(numbers[2 * i]["predicted"].get<double>(), tflops,
                1e-6 * tflops)
        << keys[i];
    const double mfu = tflops * 1e12 / 312e12;
    EXPECT_NEAR(numbers[2 * i + 1]["predicted"].get<double>(), mfu, 1e-6)
        << keys[i];
  }
}

}  // namespace weir::cli::measured_runs_test
