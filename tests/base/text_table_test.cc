// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "tests/hostile_names.h"

namespace weir::text_table_test {

using testing::EndsWith;
using testing::HasSubstr;

class TextTableTest : public testing::Test {
 protected:
  void TearDown() override { SetTextLayout({}); }
};

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  return lines;
}

TextTable Wide() {
  TextTable table;
  table.header = {"schedule", "step time", "MFU (model)", "samples/s"};
  table.rows = {{"1f1b", "1.25 s", "40.0 %", "12.8"}};
  table.optional = {0, 0, 1, 2};
  table.on_request = {};
  return table;
}

TEST_F(TextTableTest, OptionalColumnsAreLeftOutInOrder) {
  SetTextLayout({.width = 43});
  EXPECT_EQ(PrintTable(Wide()),
            "schedule  step time  MFU (model)  samples/s\n"
            "1f1b         1.25 s       40.0 %       12.8\n");
  SetTextLayout({.width = 42});
  EXPECT_EQ(PrintTable(Wide()),
            "schedule  step time  MFU (model)\n"
            "1f1b         1.25 s       40.0 %\n"
            "not shown: samples/s (--wide)\n");
  SetTextLayout({.width = 31});
  EXPECT_EQ(PrintTable(Wide()),
            "schedule  step time\n"
            "1f1b         1.25 s\n"
            "not shown: mfu, samples/s\n"
            "  (--wide)\n");
}

TEST_F(TextTableTest, WideAndNamedColumnsOverride) {
  SetTextLayout({.width = 20, .wide = true});
  EXPECT_EQ(LinesOf(PrintTable(Wide()))[0],
            "schedule  step time  MFU (model)  samples/s");
  SetTextLayout({.width = 40, .columns = {"mfu", "schedule"}});
  EXPECT_EQ(PrintTable(Wide()),
            "MFU (model)  schedule\n"
            "     40.0 %  1f1b\n");
}

TEST_F(TextTableTest, ColumnsOnRequest) {
  TextTable table = Wide();
  table.on_request = {false, false, false, true};
  SetTextLayout({.width = 80});
  EXPECT_EQ(LinesOf(PrintTable(table))[0], "schedule  step time  MFU (model)");
  SetTextLayout({.width = 80, .columns = {"samples/s"}});
  EXPECT_EQ(LinesOf(PrintTable(table))[0], "schedule  samples/s");
}

TEST_F(TextTableTest, CellsAreWrappedAtWords) {
  TextTable table;
  table.header = {"part", "source"};
  table.left = {true, true};
  table.rows = {{"gemm", "a table of the paper that measured it"},
                {"copy", "short"}};
  SetTextLayout({.width = 26});
  EXPECT_EQ(PrintTable(table),
            "part  source\n"
            "gemm  a table of the paper\n"
            "      that measured it\n"
            "copy  short\n");
}

TEST_F(TextTableTest, LongWordsBreakAtPunctuation) {
  TextTable table;
  table.header = {"file", "n"};
  table.rows = {{"models/presets/llama.textproto", "1"}};
  SetTextLayout({.width = 24});
  EXPECT_EQ(PrintTable(table),
            "file                   n\n"
            "models/presets/        1\n"
            "llama.textproto\n");
}

TEST_F(TextTableTest, EveryTextFits) {
  TextTable table;
  table.header = {"name", "value", "text"};
  table.left = {true, false, true};
  for (const HostileName& name : HostileNames()) {
    if (name.text.size() < 10000) {
      table.rows.push_back({name.text, "1", name.text});
    }
  }
  for (const int width : {40, 80, 200}) {
    SetTextLayout({.width = width});
    for (const std::string& line : LinesOf(PrintTable(table))) {
      EXPECT_LE(line.size(), static_cast<size_t>(width));
    }
  }
}

TEST_F(TextTableTest, LinesAreWrappedWithAnIndent) {
  SetTextLayout({.width = 20});
  EXPECT_EQ(WrapText("limit: the busiest rank waits\nshort\n"),
            "limit: the busiest\n  rank waits\nshort\n");
  EXPECT_EQ(WrapText("  item: the busiest rank\n", 4),
            "  item: the busiest\n      rank\n");
  EXPECT_EQ(WrapText("0123456789012345678901234 word"),
            "0123456789012345678901234\n  word");
  EXPECT_EQ(WrapText("  PCIe    GPU 48 GB/s"), "  PCIe    GPU 48\n    GB/s");
  EXPECT_EQ(WrapText(""), "");
  SetTextLayout({.width = 20, .wide = true});
  EXPECT_EQ(WrapText("limit: the busiest rank waits"),
            "limit: the busiest rank waits");
}

TEST(ColumnKeyTest, HasNoSpacesAndParentheses) {
  EXPECT_EQ(ColumnKey("step time"), "step-time");
  EXPECT_EQ(ColumnKey("TFLOP/s/GPU (model)"), "tflop/s/gpu");
  EXPECT_EQ(ColumnKey("90 % interval"), "90-interval");
  EXPECT_EQ(ColumnKey("Step_Time"), "step-time");
}

TEST(CheckColumnsTest, NamesTheColumns) {
  const std::vector<std::string> columns = {"step time", "MFU (model)"};
  const std::vector<std::string> known = {"mfu", "step-time"};
  const std::vector<std::string> unknown = {"step-tine"};
  EXPECT_TRUE(CheckColumns(known, columns).ok());
  const absl::Status status = CheckColumns(unknown, columns);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is step-tine, expected columns of step-time, mfu"));
  EXPECT_THAT(std::string(status.message()),
              EndsWith("did you mean step-time?"));
}

}  // namespace weir::text_table_test
