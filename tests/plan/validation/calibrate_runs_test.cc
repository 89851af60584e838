// SPDX-License-Identifier: Apache-2.0
// Measurements are simulations with other parameters, so the right proposal is
// known.
#include "plan/validation/calibrate_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/textproto.h"
#include "sim/simulate.h"

namespace weir::plan::calibrate_runs_test {

using testing::HasSubstr;

Scenario RunScenario(int run) {
  const uint32_t tensor = 1u << (run % 3), pipeline = 1u << (run / 3 % 3);
  Scenario scenario;
  const absl::Status parsed = ParseTextProto(
      "test",
      absl::StrCat(R"(model: "gpt2-medium" cluster: "dgx-a100" num_nodes: 2
                      schedule: "1f1b" batch { global_batch_size: 16
                      microbatch_size: )",
                   1 + run % 2, R"( sequence_length: )",
                   run % 4 == 0 ? 512 : 1024, R"( } parallelism { tensor: )",
                   tensor, R"( data: 1 pipeline: )", pipeline, "}"),
      &scenario);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return scenario;
}

scenarios::ResolvedScenario Resolved(int run,
                                     const std::vector<std::string>& settings) {
  Scenario scenario = RunScenario(run);
  for (const std::string& setting : settings) {
    scenario.add_set_figures(setting);
  }
  const auto resolved = scenarios::ResolveScenario("test", scenario);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return *resolved;
}

double SecondsOf(const scenarios::ResolvedScenario& scenario) {
  const auto result = sim::Simulate(scenario);
  EXPECT_TRUE(result.ok()) << result.status();
  return result->batch_seconds();
}

struct MeasuredRuns {
  std::vector<scenarios::ResolvedScenario> scenarios;
  std::vector<CalibrationRun> runs;
};

// `assumed` are settings of the predictions, `real` those of the machine that
// measures.
MeasuredRuns Measure(int num_runs, const std::vector<std::string>& assumed,
                     const std::vector<std::string>& real) {
  MeasuredRuns measured;
  measured.scenarios.reserve(num_runs);
  for (int run = 0; run < num_runs; ++run) {
    measured.scenarios.push_back(Resolved(run, assumed));
    measured.runs.push_back({&measured.scenarios.back(),
                             SecondsOf(measured.scenarios.back()),
                             SecondsOf(Resolved(run, real)), 0.02});
  }
  return measured;
}

TEST(CalibrateRunsTest, FindsTheParameterThatIsOff) {
  const MeasuredRuns measured =
      Measure(12, {"runtime.update_seconds=1e-2+-100%"},
              {"runtime.update_seconds=2e-2"});
  CalibrationOptions options;
  options.source = "test";
  options.num_processes = 2;
  int last = 0;
  options.progress = [&](int num_done, int num_simulations) {
    EXPECT_LE(num_done, num_simulations);
    EXPECT_GE(num_done, last);
    last = num_done;
  };
  const auto calibration = CalibrateRuns(measured.runs, options);
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  ASSERT_FALSE(calibration->figures.empty()) << calibration->why_none;
  EXPECT_EQ(calibration->figures[0].path, "runtime.update_seconds");
  EXPECT_NEAR(calibration->figures[0].proposed, 2e-2, 2e-3);
  EXPECT_LT(calibration->error_after + calibration->gain_standard_error,
            calibration->error_before);
  EXPECT_LT(calibration->error_applied, calibration->error_before);
  EXPECT_EQ(calibration->num_runs, 12);
  EXPECT_GT(last, 12);
  ASSERT_FALSE(calibration->overlays.empty());
  EXPECT_EQ(calibration->overlays[0].option, "--runtime");
  EXPECT_THAT(calibration->overlays[0].text, HasSubstr("test, 12 runs"));
}

TEST(CalibrateRunsTest, ExactPredictionsNeedNothing) {
  const MeasuredRuns measured = Measure(8, {}, {});
  const auto calibration = CalibrateRuns(measured.runs, {});
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  EXPECT_TRUE(calibration->figures.empty());
  EXPECT_THAT(calibration->why_none, HasSubstr("no change"));
  EXPECT_TRUE(calibration->overlays.empty());
}

TEST(CalibrateRunsTest, ProposalsStayInTheValidRange) {
  // Twice as fast as any efficiency allows.
  MeasuredRuns measured = Measure(9, {}, {});
  for (CalibrationRun& run : measured.runs) run.measured_seconds /= 3;
  const auto calibration = CalibrateRuns(measured.runs, {});
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  ASSERT_FALSE(calibration->figures.empty()) << calibration->why_none;
  for (const results::ProposedFigure& figure : calibration->figures) {
    if (figure.path.ends_with("efficiency") || figure.path.ends_with("_rate")) {
      EXPECT_LE(figure.proposed, 1) << figure.path;
    }
  }
}

TEST(CalibrateRunsTest, FewRunsGetAReason) {
  const MeasuredRuns measured = Measure(5, {}, {"kernel_seconds=1e-3"});
  const auto calibration = CalibrateRuns(measured.runs, {});
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  EXPECT_TRUE(calibration->figures.empty());
  EXPECT_THAT(calibration->why_none,
              HasSubstr("5 runs have a measured time that depends on "
                        "parameters, expected at least 6"));
}

TEST(CalibrateRunsTest, AnInterruptCancels) {
  const MeasuredRuns measured = Measure(6, {}, {});
  CalibrationOptions options;
  options.progress = [](int, int) {
    if (!Interrupted()) raise(SIGINT);
  };
  NoteInterrupt();
  const auto calibration = CalibrateRuns(measured.runs, options);
  ForgetInterrupt();
  ExitOnInterrupt();
  EXPECT_TRUE(absl::IsCancelled(calibration.status()));
}

}  // namespace weir::plan::calibrate_runs_test
