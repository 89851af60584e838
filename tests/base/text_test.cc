// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "base/text_table.h"
#include "tests/hostile_names.h"

namespace weir::text_test {

using testing::Each;
using testing::SizeIs;

// Returns true if a terminal must not receive `text`. Independent of
// base/text.h.
bool HasControlBytes(absl::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f) return true;
    const absl::string_view rest = text.substr(i);
    for (absl::string_view bad :
         {"\u200e", "\u200f", "\u061c", "\u2028", "\u2029", "\u202a", "\u202b",
          "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068",
          "\u2069"}) {
      if (rest.substr(0, bad.size()) == bad) return true;
    }
    if (c == 0xc2 && i + 1 < text.size() &&
        static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      return true;
    }
    if (c == 0xff || c == 0xfe || c == 0xc0) return true;
  }
  return false;
}

TEST(TextTest, NoFunctionLetsAControlCharacterThrough) {
  for (const HostileName& name : HostileNames()) {
    EXPECT_FALSE(HasControlBytes(EscapeLine(name.text))) << name.kind;
    EXPECT_FALSE(HasControlBytes(WithoutControls(name.text))) << name.kind;
    EXPECT_FALSE(HasControlBytes(Ascii(name.text))) << name.kind;
  }
}

TEST(TextTest, EscapesNameTheCharacter) {
  EXPECT_EQ(EscapeLine("a\x1b[31m\n\t"), "a\\u001b[31m\\u000a\\u0009");
  EXPECT_EQ(EscapeLine("\xc2\x9b \u202e \x7f"), "\\u009b \\u202e \\u007f");
  EXPECT_EQ(EscapeLine("\xff\xc3("), "\\xff\\xc3(");
  EXPECT_EQ(EscapeLine("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(EscapeControls("a\n\tb\r"), "a\n\tb\\u000d");
  EXPECT_EQ(WithoutControls("a\x1b\u202e\xff\n"), "a????");
}

TEST(TextTest, OtherCharactersStay) {
  for (const char* text :
       {"", "plain", "Mod\u00e8le \u6a21\u578b \U0001f680", "\u05e9\u05dc"}) {
    EXPECT_EQ(EscapeLine(text), text);
    EXPECT_EQ(WithoutControls(text), text);
  }
}

TEST(TextTest, TablesStayAlignedWhateverTheirCellsHold) {
  TextTable table;
  table.header = {"name", "value"};
  for (const HostileName& name : HostileNames()) {
    if (name.text.size() < 100) table.rows.push_back({name.text, "1"});
  }
  const std::string text = PrintTable(table);
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.back(), "");
  lines.pop_back();
  // There is one line for each row, so no cell added line ends.
  ASSERT_EQ(lines.size(), table.rows.size() + 1);
  EXPECT_THAT(lines, Each(SizeIs(lines[0].size())));
}

}  // namespace weir::text_test
