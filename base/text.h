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
// to the left, the rest to the right. No line ends in a blank.
std::string PrintTable(const TextTable& table);

// Replaces every character that is not printable ASCII by '?': what came from
// a file must not move a terminal's cursor.
std::string Ascii(absl::string_view text);

// The same, cut to at most `length` characters, the last three of them dots.
std::string Shortened(absl::string_view text, size_t length);

// Replaces every control character by '?' and leaves all other characters.
std::string WithoutControls(absl::string_view text);

// The shortest digits that read back as the same number ("0.1", "1e+30").
// Empty when the number is not finite.
std::string ShortestNumber(double number);

}  // namespace weir

#endif  // WEIR_BASE_TEXT_H_
