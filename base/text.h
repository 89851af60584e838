// SPDX-License-Identifier: Apache-2.0
// Small text helpers of what is shown.
#ifndef WEIR_BASE_TEXT_H_
#define WEIR_BASE_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir {

// A table with one header row; cells may be missing at a row's end.
struct TextTable {
  std::vector<std::string> header;
  std::vector<bool> left;  // per column: text rather than a number
  std::vector<std::vector<std::string>> rows;
};

// Prints aligned columns, two blanks apart: the first and those marked `left`
// to the left, the rest to the right. No line ends in a blank. Cells are
// printed as Ascii() returns them.
std::string PrintTable(const TextTable& table);

// Replaces every character that is not printable ASCII by '?': text from a file
// must not move a terminal's cursor.
std::string Ascii(absl::string_view text);

// The same, cut to at most `length` characters, the last three of them dots.
std::string Shortened(absl::string_view text, size_t length);

// Replaces control characters, characters that change the direction of text
// (U+202E) and bytes that are not UTF-8 by '?' and keeps all other characters.
std::string WithoutControls(absl::string_view text);

// Replaces the same characters by escapes, such as \u001b and \xff, so that
// text from a file cannot move a terminal's cursor or pretend to be another
// text. Keeps line ends and tabs. In a JSON text, where such characters occur
// only inside strings, \u001b is JSON's own escape: the value stays the same.
std::string EscapeControls(absl::string_view text);

// Does the same with line ends and tabs too: the result is one line.
std::string EscapeLine(absl::string_view text);

// The shortest digits that read back as the same number ("0.1", "1e+30").
// Empty when the number is not finite.
std::string ShortestNumber(double number);

}  // namespace weir

#endif  // WEIR_BASE_TEXT_H_
