// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "tests/hostile_names.h"

namespace weir::csv_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(absl::string_view text) {
  return std::string(ReadCsv("x.csv", text).status().message());
}

TEST(CsvTest, RowsKnowTheirLines) {
  const auto table = ReadCsv("x.csv", "a,b\n1,2\n\n\"two\nlines\",4\n5,6");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->header(), ElementsAre("a", "b"));
  ASSERT_EQ(table->num_rows(), 3);
  EXPECT_EQ(table->rows()[0].line, 2);
  EXPECT_EQ(table->rows()[1].line, 4);
  EXPECT_EQ(table->rows()[2].line, 6);
  EXPECT_EQ(table->Column("a")->Text(1), "two\nlines");
  EXPECT_THAT(*table->Column("b")->Numbers(0, 9), ElementsAre(2, 4, 6));
}

TEST(CsvTest, QuotedFieldsHoldCommasAndQuotes) {
  const auto table = ReadCsv("x", "a,b\n\"x, \"\"y\"\"\",\"\"\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->rows()[0].fields, ElementsAre("x, \"y\"", ""));
}

TEST(CsvTest, SpacesByteOrderMarkAndCrlfDoNotCount) {
  const auto table = ReadCsv("x",
                             "\xEF\xBB\xBF"
                             "a, b\r\n 1 ,2\r\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->header(), ElementsAre("a", "b"));
  EXPECT_THAT(table->rows()[0].fields, ElementsAre("1", "2"));
}

TEST(CsvTest, AHeaderAloneHasNoRows) {
  EXPECT_EQ(ReadCsv("x", "a,b\n")->num_rows(), 0);
}

TEST(CsvTest, ErrorsNameLineAndColumn) {
  const auto table = ReadCsv("x.csv", "m,t\n1,2\n0,nan\nz,3\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Column("m")->Numbers(1, 9).status().message(),
            "x.csv:3: m is \"0\", expected 1 to 9\n"
            "x.csv:4: m is \"z\", expected a number");
  EXPECT_EQ(table->Column("t")->Number(1, 0, 9).status().message(),
            "x.csv:3: t is \"nan\", expected a number");
  EXPECT_FALSE(table->HasColumn("n"));
  EXPECT_THAT(std::string(table->Column("n").status().message()),
              AllOf(HasSubstr("x.csv: has no column n"), HasSubstr("(m, t)")));
}

TEST(CsvTest, RefusesTablesThatAreNone) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("x.csv:1: is empty"));
  EXPECT_THAT(ErrorOf("\n \n"), HasSubstr("x.csv:1: is empty"));
  EXPECT_EQ(ErrorOf("a,b\n1\n1,2,3\n"),
            "x.csv:2: has 1 fields, expected 2 (a, b)\n"
            "x.csv:3: has 3 fields, expected 2 (a, b)");
  EXPECT_THAT(ErrorOf("a,a,\n"),
              AllOf(HasSubstr("x.csv:1: column \"a\" appears twice"),
                    HasSubstr("x.csv:1: column 3 has no name")));
  EXPECT_THAT(ErrorOf("a,b\n1,x\"y\n"), HasSubstr("x.csv:2:"));
  EXPECT_THAT(ErrorOf("a,b\n1,2\n3,\"y\n\n"),
              HasSubstr("x.csv:3: a quoted field is not closed"));
}

TEST(CsvTest, WrittenFieldsAreReadAgain) {
  EXPECT_EQ(CsvField("plain 1.5"), "plain 1.5");
  EXPECT_EQ(CsvField(""), "");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"so\""), "\"say \"\"so\"\"\"");
  EXPECT_EQ(CsvField("two\nlines"), "two?lines");
}

TEST(CsvTest, NoTextIsAFormulaAndNumbersStayNumbers) {
  for (const HostileName& name : HostileNames()) {
    const std::string field = CsvField(name.text);
    const size_t begin = field.find_first_not_of("\" ");
    ASSERT_NE(begin, std::string::npos) << name.kind;
    EXPECT_EQ(std::string("=+-@").find(field[begin]), std::string::npos)
        << name.kind << ": " << field;
    EXPECT_TRUE(IsSafeForTerminal(field)) << name.kind;
    EXPECT_EQ(field.find('\n'), std::string::npos) << name.kind;
  }
  EXPECT_EQ(CsvField("=1+1"), "'=1+1");
  EXPECT_EQ(CsvField("@x,y"), "\"'@x,y\"");
  for (const char* number : {"-1.5", "+2", "-1e-30", "-0"}) {
    EXPECT_EQ(CsvField(number), number);
  }
}

TEST(CsvTest, HostileNamesReadBackWithoutTheirControls) {
  std::string text = "name,number\n";
  for (const HostileName& name : HostileNames()) {
    absl::StrAppend(&text, CsvField(name.text), ",-1.5\n");
  }
  const auto table = ReadCsv("t.csv", text);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->num_rows(), static_cast<int>(HostileNames().size()));
  const auto names = table->Column("name");
  const auto numbers = table->Column("number");
  for (int row = 0; row < table->num_rows(); ++row) {
    EXPECT_EQ(names->Text(row), WithoutControls(HostileNames()[row].text));
    EXPECT_EQ(*numbers->Number(row, -2, 0), -1.5);
  }
}

}  // namespace weir::csv_test
