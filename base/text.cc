// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace weir {
namespace {

void AppendRow(const std::vector<std::string>& cells,
               const std::vector<size_t>& widths, const std::vector<bool>& left,
               std::string* out) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - cells[i].size(), ' ');
    const bool to_left = i == 0 || (i < left.size() && left[i]);
    absl::StrAppend(&line, i == 0 ? "" : "  ", to_left ? "" : padding, cells[i],
                    to_left ? padding : "");
  }
  absl::StripTrailingAsciiWhitespace(&line);
  absl::StrAppend(out, line, "\n");
}

}  // namespace

std::string PrintTable(const TextTable& table) {
  std::vector<size_t> widths;
  const auto widen = [&](const std::vector<std::string>& cells) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], cells[i].size());
    }
  };
  widen(table.header);
  for (const auto& row : table.rows) widen(row);

  std::string out;
  AppendRow(table.header, widths, table.left, &out);
  for (const auto& row : table.rows) AppendRow(row, widths, table.left, &out);
  return out;
}

std::string Ascii(absl::string_view text) {
  std::string out;
  for (char c : text) {
    // One mark per UTF-8 character: its further bytes are 10xxxxxx.
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) continue;
    out += absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?';
  }
  return out;
}

std::string Shortened(absl::string_view text, size_t length) {
  std::string out = Ascii(text);
  if (out.size() > length) out = out.substr(0, length - 3) + "...";
  return out;
}

std::string WithoutControls(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool c1 = text[i] == '\xC2' && i + 1 < text.size() &&
                    (static_cast<unsigned char>(text[i + 1]) & 0xE0) == 0x80;
    if (c1) ++i;  // U+0080 to U+009F
    out += c1 || absl::ascii_iscntrl(static_cast<unsigned char>(text[i]))
               ? '?'
               : text[i];
  }
  return out;
}

std::string ShortestNumber(double number) {
  if (!std::isfinite(number)) return "";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number).ptr;
  return std::string(buffer, end);
}

}  // namespace weir
