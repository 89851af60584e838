// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/verdict.h"

#include <gmock/gmock.h>

#include <cmath>

#include "absl/strings/str_cat.h"

namespace weir::calibrate::verdict_test {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using Verdict = CalibrationCheck::Verdict;

// Returns reports of 40 kernels of 30 us and 40 of 5 us, one stage and its
// memory, all of them as predicted.
CalibrationReports Good() {
  CalibrationReports reports;
  for (int i = 0; i < 80; ++i) {
    const double seconds = i < 40 ? 30e-6 : 5e-6;
    const std::string name = absl::StrCat("gemm ", i);
    reports.run.push_back({"kernel", name, seconds, seconds, ""});
    reports.check.push_back({"verify", name, 1e-2, 1e-3, ""});
    reports.run.push_back(
        {"kernel", absl::StrCat("norm ", i), seconds, seconds, ""});
    reports.run.push_back(
        {"bandwidth", absl::StrCat("norm ", i), 4e12, 3.6e12, ""});
  }
  reports.run.push_back({"attention", "attention_forward", 1e-4, 1.7e-4, ""});
  for (const char* pass : {"forward", "backward_input", "backward_weight"}) {
    reports.run.push_back(
        {"stage", absl::StrCat("gpt2 2 blocks mb 1 s 1024 tp 1 ", pass), 1e-3,
         1e-3, ""});
  }
  reports.run.push_back({"memory", "gpt2 2 blocks", 1e9, 1.001e9, ""});
  reports.repeated = reports.best = reports.run;
  return reports;
}

ReportRow& Find(std::vector<ReportRow>* rows, const std::string& kind,
                const std::string& name) {
  for (ReportRow& row : *rows) {
    if (row.kind == kind && row.name == name) return row;
  }
  ADD_FAILURE() << kind << " " << name;
  return rows->front();
}

CalibrationCheck CheckOf(const CalibrationReports& reports,
                         const std::string& name) {
  for (const CalibrationCheck& check : JudgeCalibration(reports)) {
    if (check.name.rfind(name, 0) == 0) return check;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(VerdictTest, AGoodGpuPasses) {
  const std::vector<CalibrationCheck> checks = JudgeCalibration(Good());
  EXPECT_FALSE(AnyFails(checks));
  for (const CalibrationCheck& check : checks) {
    const bool attention = check.name.rfind("attention", 0) == 0;
    EXPECT_EQ(check.verdict, attention ? Verdict::kReported : Verdict::kHolds)
        << check.name;
  }
  EXPECT_NEAR(CheckOf(Good(), "attention").value, 1.7, 1e-9);
}

TEST(VerdictTest, WhatDidNotRunIsNeitherRightNorWrong) {
  const std::vector<CalibrationCheck> none = JudgeCalibration({});
  EXPECT_TRUE(AnyFails(none));  // nothing is shown
  for (const CalibrationCheck& check : none) {
    EXPECT_EQ(check.verdict, Verdict::kNotRun) << check.name;
  }
  EXPECT_THAT(PrintChecks(none, true),
              AllOf(HasSubstr("n/a"), Not(HasSubstr("FAILS")),
                    Not(HasSubstr("holds"))));
  CalibrationReports reports = Good();
  reports.repeated.clear();
  EXPECT_EQ(CheckOf(reports, "repeated calibration").verdict, Verdict::kNotRun);
  EXPECT_FALSE(AnyFails(JudgeCalibration(reports)));
}

TEST(VerdictTest, LimitsOfRepeatedCalibrationsArePrintedInPercent) {
  const std::string text = PrintChecks(JudgeCalibration(Good()), false);
  EXPECT_THAT(text, AllOf(HasSubstr(" 0.50 %"), HasSubstr(" 2.00 %")));
}

TEST(VerdictTest, OneSlowRepetitionIsAnOutlierAndMoreAreNot) {
  CalibrationReports reports = Good();
  Find(&reports.repeated, "kernel", "gemm 3").measured *= 1.2;
  EXPECT_EQ(
      CheckOf(reports, "repeated calibration, kernels from 20 us, 95").verdict,
      Verdict::kHolds);
  for (int i = 4; i < 10; ++i) {
    Find(&reports.repeated, "kernel", absl::StrCat("gemm ", i)).measured *= 0.9;
  }
  const CalibrationCheck tail =
      CheckOf(reports, "repeated calibration, kernels from 20 us, 95");
  EXPECT_EQ(tail.verdict, Verdict::kFails);
  EXPECT_EQ(tail.num_rows, 80);  // none of 5 us
  ASSERT_THAT(tail.worst, SizeIs(10));
  EXPECT_EQ(tail.worst[0].name, "gemm 3");
  EXPECT_NEAR(tail.worst[0].value, 0.2, 1e-9);
  EXPECT_NEAR(tail.worst[1].value, -0.1, 1e-9);
  EXPECT_EQ(CheckOf(reports, "repeated calibration, kernels from 20 us, median")
                .verdict,
            Verdict::kHolds);
}

TEST(VerdictTest, ShortKernelsAreNotJudgedByTheirTime) {
  CalibrationReports reports = Good();
  for (int i = 40; i < 80; ++i) {
    Find(&reports.repeated, "kernel", absl::StrCat("gemm ", i)).measured *= 1.5;
    Find(&reports.run, "bandwidth", absl::StrCat("norm ", i)).measured = 1e11;
  }
  EXPECT_FALSE(AnyFails(JudgeCalibration(reports)));
}

TEST(VerdictTest, GemmsOfTheModelCountBySum) {
  CalibrationReports reports = Good();
  // A short one may lose much.
  Find(&reports.best, "kernel", "gemm 50").measured /= 2;
  EXPECT_EQ(CheckOf(reports, "GEMMs of the model").verdict, Verdict::kHolds);
  EXPECT_EQ(CheckOf(reports, "GEMMs of the model").worst[0].name, "gemm 50");
  for (int i = 0; i < 40; ++i) {
    Find(&reports.best, "kernel", absl::StrCat("gemm ", i)).measured *= 0.95;
  }
  EXPECT_EQ(CheckOf(reports, "GEMMs of the model").verdict, Verdict::kFails);
  // GEMMs that were measured for fits only do not count.
  for (ReportRow& row : reports.run) {
    if (row.kind == "kernel") row.kind = "grid";
  }
  EXPECT_EQ(CheckOf(reports, "GEMMs of the model").verdict, Verdict::kNotRun);
}

TEST(VerdictTest, AStageIsItsForwardAndBackwardTogether) {
  CalibrationReports reports = Good();
  const std::string stage = "gpt2 2 blocks mb 1 s 1024 tp 1 ";
  Find(&reports.run, "stage", stage + "forward").measured = 1.07e-3;
  EXPECT_EQ(CheckOf(reports, "stages").verdict, Verdict::kHolds);
  Find(&reports.run, "stage", stage + "backward_input").measured = 1.07e-3;
  const CalibrationCheck check = CheckOf(reports, "stages");
  EXPECT_EQ(check.verdict, Verdict::kFails);
  EXPECT_NEAR(check.value, 0.14 / 3, 1e-9);
  EXPECT_EQ(check.worst[0].name, "gpt2 2 blocks mb 1 s 1024 tp 1");
  // A stage of which a pass is missing is not judged.
  Find(&reports.run, "stage", stage + "backward_weight").kind = "skipped";
  EXPECT_EQ(CheckOf(reports, "stages").verdict, Verdict::kNotRun);
}

TEST(VerdictTest, WrongOperationsFailByName) {
  CalibrationReports reports = Good();
  reports.check.push_back({"refused", "adam", 0, std::nan(""), "NaN"});
  Find(&reports.check, "verify", "gemm 7").measured = std::nan("");
  const std::vector<CalibrationCheck> checks = JudgeCalibration(reports);
  EXPECT_TRUE(AnyFails(checks));
  EXPECT_EQ(checks[0].verdict, Verdict::kFails);
  EXPECT_EQ(checks[1].verdict, Verdict::kFails);
  const std::string text = PrintChecks(checks, false);
  EXPECT_THAT(text, AllOf(HasSubstr("wrong or failed operations"),
                          HasSubstr("  adam\n"), HasSubstr("  gemm 7\n"),
                          Not(HasSubstr("worst rows of: stages"))));
  EXPECT_THAT(PrintChecks(checks, true), HasSubstr("worst rows of: stages"));
}

TEST(VerdictTest, MemoryAndBandwidthHaveLimits) {
  CalibrationReports reports = Good();
  Find(&reports.run, "memory", "gpt2 2 blocks").measured = 1.02e9;
  EXPECT_EQ(CheckOf(reports, "memory of a stage").verdict, Verdict::kFails);
  for (int i = 0; i < 25; ++i) {
    Find(&reports.run, "bandwidth", absl::StrCat("norm ", i)).measured = 2.8e12;
  }
  EXPECT_EQ(CheckOf(reports, "memory-bound kernels").verdict, Verdict::kFails);
  EXPECT_EQ(CheckOf(reports,
                    "memory-bound kernels from 20 us vs copies, loss, "
                    "95th")
                .verdict,
            Verdict::kHolds);
}

TEST(VerdictTest, ReportsAreReadAsTheyWereWritten) {
  CalibrationReports reports = Good();
  reports.run.push_back({"refused", "adam, fused", 0, std::nan(""), "a \"b\""});
  const auto read = ReadReportCsv("r.csv", PrintReportCsv(reports.run));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), reports.run.size());
  EXPECT_EQ(read->back().name, "adam, fused");
  EXPECT_EQ(read->back().note, "a \"b\"");
  EXPECT_TRUE(std::isnan(read->back().measured));
  EXPECT_EQ(read->front().measured, 30e-6);
  EXPECT_THAT(std::string(ReadReportCsv("r.csv",
                                        "kind,name,expected,measured,"
                                        "error,note\na,b,c,1,2,d\n")
                              .status()
                              .message()),
              HasSubstr("r.csv:2: expected is \"c\", expected a number"));
  const std::string csv = PrintChecksCsv(JudgeCalibration(reports));
  EXPECT_THAT(csv, AllOf(HasSubstr("check,limit,value,rows,verdict\n"),
                         HasSubstr("wrong or failed operations,0,1,"),
                         HasSubstr(",reported\n")));
}

}  // namespace weir::calibrate::verdict_test
