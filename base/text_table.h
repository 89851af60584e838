// SPDX-License-Identifier: Apache-2.0
// Tables and paragraphs that fit the width of the output.
#ifndef WEIR_BASE_TEXT_TABLE_H_
#define WEIR_BASE_TEXT_TABLE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

// How PrintTable and WrapText lay text out.
struct TextLayout {
  static constexpr int kUsualWidth = 80;
  // Characters in a line. Not a terminal: kUsualWidth, so that the output does
  // not depend on where it is written to.
  int width = kUsualWidth;
  // Neither leaves out columns nor wraps lines.
  bool wide = false;
  // If not empty, tables with optional columns have exactly these, in this
  // order, as ColumnKey() names them, and always the first one.
  std::vector<std::string> columns = {};
};

// Sets the layout of all further text. The program calls it once, before the
// first output.
void SetTextLayout(const TextLayout& layout);
const TextLayout& CurrentTextLayout();

// A table with one header row. Trailing cells of a row may be missing.
struct TextTable {
  std::vector<std::string> header;
  std::vector<bool> left;  // by column: left-aligned text, not a number
  std::vector<std::vector<std::string>> rows;
  // By column: 0 (and beyond the end) for a column that is always printed. If
  // the table is too wide, the column with the largest number is left out
  // first, of equal ones the last.
  std::vector<int> optional = {};
  // By column: printed only if the user asks for this column.
  std::vector<bool> on_request = {};
};

// Prints aligned columns, two spaces apart. The first column and those marked
// `left` are left-aligned, the others right-aligned. Lines have no trailing
// spaces. Cells are printed as Ascii() returns them.
//
// A table wider than the layout loses optional columns, which a last line
// names, until it fits. If it is still too wide, cells of left-aligned columns
// continue in further lines: broken at spaces, or at punctuation and anywhere
// in words that are too long.
std::string PrintTable(const TextTable& table);

// Returns the name of a column for TextLayout.columns: the header in lower
// case without text in parentheses, with '-' for spaces and punctuation.
// "step-time" for "step time", "mfu" for "MFU (model)".
std::string ColumnKey(absl::string_view header);

// Returns InvalidArgument with the columns if one of the names, each in the
// form of ColumnKey(), is not among them.
absl::Status CheckColumns(std::span<const std::string> names,
                          std::span<const std::string> columns);

// Breaks every line that is longer than the layout's width at spaces. Further
// lines begin with `indent` spaces.
std::string WrapText(absl::string_view text, int indent = 2);

}  // namespace weir

#endif  // WEIR_BASE_TEXT_TABLE_H_
