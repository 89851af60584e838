// SPDX-License-Identifier: Apache-2.0
#include "results/compare/measured_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/textproto.h"

namespace weir::results::measured_table_test {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;

MeasuredColumns Columns(absl::string_view text) {
  MeasuredColumns columns;
  EXPECT_TRUE(ParseTextProto("map", text, &columns).ok());
  return columns;
}

std::string Message(absl::string_view text, absl::string_view map) {
  const auto table = ReadMeasuredTable("f.csv", text, Columns(map));
  EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(table.status().message());
}

TEST(MeasuredTableTest, ColumnsKeepTheirNamesUnlessTheMapRenamesThem) {
  const auto table = ReadMeasuredTable(
      "f.csv", "tp,pipeline depth\n2,4\n",
      Columns(R"(columns { from: "pipeline depth" to: "pp" })"));
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows.size(), 1);
  EXPECT_EQ(table->rows[0].line, 2);
  EXPECT_THAT(table->rows[0].fields,
              ElementsAre(FieldsAre("pp", "pipeline depth", "4"),
                          FieldsAre("tp", "tp", "2")));
}

TEST(MeasuredTableTest, AColumnMayGiveSeveralAndAPatternTakesAPart) {
  const auto table =
      ReadMeasuredTable("f.csv", "run\nt8 p4 x\nt2\n", Columns(R"map(
        columns { from: "run" to: "tp" pattern: "t(\\d+)" }
        columns { from: "run" to: "pp" pattern: "p(\\d+)" })map"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->rows[0].fields, ElementsAre(FieldsAre("tp", "run", "8"),
                                                 FieldsAre("pp", "run", "4")));
  // A cell that does not match gives no field.
  EXPECT_THAT(table->rows[1].fields, ElementsAre(FieldsAre("tp", "run", "2")));
}

TEST(MeasuredTableTest, WordsAreTranslatedNumbersScaledAndOthersKept) {
  const auto table =
      ReadMeasuredTable("f.csv", "s,ms\nFlush,1500\nother,OOM\n", Columns(R"(
        columns { from: "s" to: "schedule" values { key: "Flush" value: "1f1b" } }
        columns { from: "ms" to: "step_seconds" scale: 0.001 })"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->rows[0].fields[0].text, "1f1b");
  EXPECT_EQ(table->rows[0].fields[1].text, "1.5");
  EXPECT_EQ(table->rows[1].fields[0].text, "other");
  EXPECT_EQ(table->rows[1].fields[1].text, "OOM");
}

TEST(MeasuredTableTest, ConstantsStandInEveryRowAndIgnoredColumnsInNone) {
  const auto table = ReadMeasuredTable("f.csv", "a,b\n1,2\n", Columns(R"(
        constants { column: "nodes" value: "4" } ignore: "a")"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->rows[0].fields,
              ElementsAre(FieldsAre("b", "b", "2"),
                          FieldsAre("nodes", "the column map", "4")));
}

TEST(MeasuredTableTest, ConditionsLeaveRowsOutAndCountThem) {
  const auto table =
      ReadMeasuredTable("f.csv", "depth,name\n2,a\n4,b\n8,C\n",
                        Columns(R"(columns { from: "depth" to: "pp" }
                 where { column: "pp" values: "4" values: "8" }
                 where { column: "name" values: "c" values: "b" }
                 where { column: "depth" values: "8" })"));
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->rows.size(), 1);
  EXPECT_EQ(table->rows[0].line, 4);
  EXPECT_EQ(table->num_left_out, 2);
}

TEST(MeasuredTableTest, WhatTheMapNamesMustBeThereAllAtOnce) {
  const std::string message = Message("a\n1\n", R"map(
      columns { from: "b" to: "pp" }
      columns { from: "a" to: "tp" pattern: "(" }
      columns { from: "a" to: "dp" pattern: "x" }
      ignore: "c"
      where { column: "d" values: "1" })map");
  EXPECT_THAT(message, HasSubstr("f.csv: b is named by the column map"));
  EXPECT_THAT(message, HasSubstr("f.csv: pattern is \"(\""));
  EXPECT_THAT(message, HasSubstr("pattern is \"x\", expected a (group)"));
  EXPECT_THAT(message, HasSubstr("f.csv: c is ignored by the column map"));
  EXPECT_THAT(message,
              HasSubstr("f.csv: d is named by --where, but does not exist"));
}

TEST(MeasuredTableTest, AColumnTwiceIsAnErrorWithItsLine) {
  EXPECT_THAT(
      Message(
          "a,b\n1,\n1,2\n",
          R"(columns { from: "a" to: "pp" } columns { from: "b" to: "pp" })"),
      HasSubstr("f.csv: 3 gives pp twice"));
}

TEST(MeasuredTableTest, ConditionsOfTheCommandLine) {
  const auto conditions = ParseConditions("tp=2,pp=4|8");
  ASSERT_TRUE(conditions.ok());
  ASSERT_EQ(conditions->size(), 2);
  EXPECT_EQ((*conditions)[1].column(), "pp");
  EXPECT_THAT((*conditions)[1].values(), ElementsAre("4", "8"));
  EXPECT_THAT(ParseConditions("tp").status().message(),
              HasSubstr("is \"tp\", expected column=value"));
}

// Expressions for which a backtracking engine would run for years or overflow
// the stack.
TEST(MeasuredTableTest, NoPatternTakesMoreThanItsTextIsWorth) {
  const auto years = ReadMeasuredTable(
      "f.csv", "a\n" + std::string(100, 'x') + "\n",
      Columns(R"map(columns { from: "a" to: "name" pattern: "(x*)*y" })map"));
  ASSERT_TRUE(years.ok()) << years.status();
  EXPECT_TRUE(years->rows[0].fields.empty());
  const std::string large(1 << 20, 'x');
  const auto deep = ReadMeasuredTable(
      "f.csv", "a\n" + large + "\n",
      Columns(R"map(columns { from: "a" to: "name" pattern: "((x|z)*)" })map"));
  ASSERT_TRUE(deep.ok()) << deep.status();
  EXPECT_EQ(deep->rows[0].fields[0].text, large);
}

}  // namespace weir::results::measured_table_test
