// SPDX-License-Identifier: Apache-2.0
#include "base/problem_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::problem_parts_test {

using testing::ElementsAre;

TEST(ProblemPartsTest, FieldsOfFiles) {
  const ProblemParts parts =
      SplitProblem("a.textproto:3:7: nodes[0].speed is 0, expected above 0");
  EXPECT_EQ(parts.file, "a.textproto");
  EXPECT_EQ(parts.line, 3);
  EXPECT_EQ(parts.column, 7);
  EXPECT_EQ(parts.field, "nodes[0].speed");
  EXPECT_EQ(parts.found, "0");
  EXPECT_EQ(parts.expected, "above 0");
}

TEST(ProblemPartsTest, FlagsOfCommands) {
  const ProblemParts parts = SplitProblem(
      "weir simulate: --pp is 0, expected a whole number from 1 to 2147483647");
  EXPECT_EQ(parts.file, "weir simulate");
  EXPECT_EQ(parts.line, 0);
  EXPECT_EQ(parts.field, "--pp");
  EXPECT_EQ(parts.found, "0");
  EXPECT_EQ(parts.expected, "a whole number from 1 to 2147483647");
}

TEST(ProblemPartsTest, OtherForms) {
  ProblemParts parts = SplitProblem("t.csv:2: found 3 columns, expected 4");
  EXPECT_EQ(parts.line, 2);
  EXPECT_EQ(parts.column, 0);
  EXPECT_EQ(parts.field, "");
  EXPECT_EQ(parts.found, "3 columns");

  parts = SplitProblem("schedule is x, expected one of a, b; did you mean a?");
  EXPECT_EQ(parts.file, "");
  EXPECT_EQ(parts.field, "schedule");
  EXPECT_EQ(parts.found, "x");
  EXPECT_EQ(parts.expected, "one of a, b");

  parts = SplitProblem("s: --set: gemm.rate.value is 3, expected 0.001 to 1");
  EXPECT_EQ(parts.file, "s");
  EXPECT_EQ(parts.field, "gemm.rate.value");
  EXPECT_EQ(parts.found, "3");
  EXPECT_EQ(parts.expected, "0.001 to 1");

  parts = SplitProblem("scenario: is 'x', expected an instance of Scenario");
  EXPECT_EQ(parts.file, "scenario");
  EXPECT_EQ(parts.field, "");
  EXPECT_EQ(parts.found, "'x'");
  EXPECT_EQ(parts.expected, "an instance of Scenario");

  parts = SplitProblem(
      "s: --model x9: is neither a file nor a preset of m/, "
      "expected a file or one of x7, x8; did you mean x8?");
  EXPECT_EQ(parts.file, "s");
  EXPECT_EQ(parts.field, "--model");
  EXPECT_EQ(parts.found, "x9");
  EXPECT_EQ(parts.expected, "a file or one of x7, x8");

  parts = SplitProblem("s: training.lora requires one GPU");
  EXPECT_EQ(parts.field, "training.lora");
  EXPECT_EQ(parts.found, "");

  parts = SplitProblem("nosuch: no such file");
  EXPECT_EQ(parts.file, "nosuch");
  EXPECT_EQ(parts.message, "nosuch: no such file");

  parts = SplitProblem("a.csv:-1: x is 1, expected 2");
  EXPECT_EQ(parts.file, "a.csv:-1");
  EXPECT_EQ(parts.line, 0);
}

TEST(ProblemPartsTest, UnknownWordsOfACommand) {
  ProblemParts parts =
      SplitProblem("weir simulate: unknown option --pq; did you mean --pp?");
  EXPECT_EQ(parts.file, "weir simulate");
  EXPECT_EQ(parts.field, "--pq");
  EXPECT_EQ(parts.found, "");
  EXPECT_EQ(parts.expected, "");

  parts = SplitProblem("weir: unknown command foo (simulate, compare)");
  EXPECT_EQ(parts.field, "");
  EXPECT_EQ(parts.found, "foo");
}

TEST(ProblemPartsTest, LinesAndTheirDetails) {
  const auto all = SplitProblems("a: b is 1, expected 2\n  because\n\nc: d\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].field, "b");
  EXPECT_THAT(all[0].details, ElementsAre("because"));
  EXPECT_EQ(all[1].file, "c");
  EXPECT_TRUE(SplitProblems("").empty());
}

}  // namespace weir::problem_parts_test
