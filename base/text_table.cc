// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/spelling.h"
#include "base/text.h"

namespace weir {
namespace {

constexpr size_t kGap = 2;        // spaces between columns
constexpr size_t kNarrowest = 8;  // a column whose words are broken

TextLayout& Layout() {
  static TextLayout layout;
  return layout;
}

size_t Width() { return static_cast<size_t>(std::max(Layout().width, 1)); }

// Returns the first `width` characters or less: up to the last punctuation.
size_t PieceOfWord(absl::string_view word, size_t width) {
  const size_t at = word.substr(0, width).find_last_of("/,;:|_-");
  return at == absl::string_view::npos || at == 0 ? width : at + 1;
}

// Splits text into lines of at most `width` characters.
std::vector<std::string> Lines(absl::string_view text, size_t width) {
  if (text.size() <= width) return {std::string(text)};
  std::vector<std::string> lines = {""};
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const bool fits = lines.back().size() + 1 + word.size() <= width;
    if (lines.back().empty() || fits) {
      absl::StrAppend(&lines.back(), lines.back().empty() ? "" : " ", word);
    } else {
      lines.emplace_back(word);
    }
    while (lines.back().size() > width) {
      const size_t length = PieceOfWord(lines.back(), width);
      std::string rest = lines.back().substr(length);
      lines.back().resize(length);
      lines.push_back(std::move(rest));
    }
  }
  return lines;
}

size_t LongestWord(absl::string_view text) {
  size_t longest = 0;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    longest = std::max(longest, word.size());
  }
  return longest;
}

// A table without optional columns, and the widths of its columns.
class Printer {
 public:
  Printer(const TextTable& table, const std::vector<size_t>& columns)
      : columns_(columns) {
    Take(table.header);
    for (const auto& row : table.rows) Take(row);
    for (size_t i = 0; i < columns.size(); ++i) {
      left_.push_back(columns[i] == 0 || (columns[i] < table.left.size() &&
                                          table.left[columns[i]]));
      size_t width = 0;
      for (const auto& row : rows_) {
        if (i < row.size()) width = std::max(width, row[i].size());
      }
      widths_.push_back(width);
    }
  }

  size_t width() const {
    return std::accumulate(widths_.begin(), widths_.end(), size_t{0}) +
           kGap * (std::max<size_t>(widths_.size(), 1) - 1);
  }

  // Makes left-aligned columns narrower until the table has this width.
  void Shrink(size_t limit) {
    if (widths_.empty()) return;
    std::vector<size_t> least(widths_.size(), 0);
    for (size_t i = 0; i < widths_.size(); ++i) {
      for (const auto& row : rows_) {
        if (i < row.size()) least[i] = std::max(least[i], LongestWord(row[i]));
      }
    }
    ShrinkTo(limit, least);
    // Words of the header, and of the first column, which names the rows, are
    // broken last.
    std::vector<size_t> narrow(widths_.size(), kNarrowest);
    for (size_t i = 0; i < rows_[0].size(); ++i) {
      narrow[i] = std::max(kNarrowest, LongestWord(rows_[0][i]));
    }
    narrow[0] = least[0];
    ShrinkTo(limit, narrow);
    std::fill(narrow.begin(), narrow.end(), kNarrowest);
    ShrinkTo(limit, narrow);
  }

  std::string Print() const {
    std::string out;
    for (const auto& row : rows_) AppendRow(row, &out);
    return out;
  }

 private:
  void Take(const std::vector<std::string>& cells) {
    std::vector<std::string> row;
    for (const size_t column : columns_) {
      row.push_back(column < cells.size() ? Ascii(cells[column]) : "");
    }
    while (!row.empty() && row.back().empty()) row.pop_back();
    rows_.push_back(std::move(row));
  }

  void ShrinkTo(size_t limit, const std::vector<size_t>& least) {
    while (width() > limit) {
      std::optional<size_t> widest;
      for (size_t i = 0; i < widths_.size(); ++i) {
        if (!left_[i] || widths_[i] <= least[i]) continue;
        if (!widest || widths_[i] > widths_[*widest]) widest = i;
      }
      if (!widest.has_value()) return;
      --widths_[*widest];
    }
  }

  void AppendRow(const std::vector<std::string>& cells,
                 std::string* out) const {
    std::vector<std::vector<std::string>> lines;
    size_t height = 1;
    for (size_t i = 0; i < cells.size(); ++i) {
      lines.push_back(Lines(cells[i], std::max<size_t>(widths_[i], 1)));
      height = std::max(height, lines.back().size());
    }
    for (size_t at = 0; at < height; ++at) {
      std::string line;
      for (size_t i = 0; i < cells.size(); ++i) {
        const std::string text = at < lines[i].size() ? lines[i][at] : "";
        const std::string padding(widths_[i] - text.size(), ' ');
        absl::StrAppend(&line, i == 0 ? "" : "  ", left_[i] ? "" : padding,
                        text, left_[i] ? padding : "");
      }
      absl::StripTrailingAsciiWhitespace(&line);
      absl::StrAppend(out, line, "\n");
    }
  }

  std::vector<size_t> columns_;
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;  // the header first
  std::vector<size_t> widths_;
};

int OptionalOf(const TextTable& table, size_t column) {
  return column < table.optional.size() ? table.optional[column] : 0;
}

bool OnRequest(const TextTable& table, size_t column) {
  return column < table.on_request.size() && table.on_request[column];
}

// Returns the columns that the user asked for, after the first one, which names
// the rows.
std::vector<size_t> AskedColumns(const TextTable& table) {
  std::vector<size_t> columns;
  for (const std::string& name : Layout().columns) {
    for (size_t i = 0; i < table.header.size(); ++i) {
      if (ColumnKey(table.header[i]) == name) columns.push_back(i);
    }
  }
  if (!columns.empty() && !absl::c_linear_search(columns, 0)) {
    columns.insert(columns.begin(), 0);
  }
  return columns;
}

}  // namespace

void SetTextLayout(const TextLayout& layout) { Layout() = layout; }

const TextLayout& CurrentTextLayout() { return Layout(); }

std::string PrintTable(const TextTable& table) {
  size_t num_columns = table.header.size();
  for (const auto& row : table.rows) {
    num_columns = std::max(num_columns, row.size());
  }
  const bool chosen = !Layout().columns.empty() && !table.optional.empty();
  std::vector<size_t> columns;
  if (chosen) columns = AskedColumns(table);
  if (columns.empty()) {
    for (size_t i = 0; i < num_columns; ++i) {
      if (!OnRequest(table, i)) columns.push_back(i);
    }
  }
  Printer printer(table, columns);
  if (Layout().wide) return printer.Print();
  std::vector<size_t> left_out;
  while (!chosen && printer.width() > Width()) {
    size_t drop = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (OptionalOf(table, columns[i]) >= OptionalOf(table, columns[drop])) {
        drop = i;
      }
    }
    if (OptionalOf(table, columns[drop]) == 0) break;
    left_out.push_back(columns[drop]);
    columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(drop));
    printer = Printer(table, columns);
  }
  if (printer.width() > Width()) printer.Shrink(Width());
  std::string text = printer.Print();
  if (left_out.empty()) return text;
  absl::c_sort(left_out);
  const std::string names =
      absl::StrJoin(left_out, ", ", [&](std::string* out, size_t column) {
        absl::StrAppend(out, ColumnKey(Ascii(table.header[column])));
      });
  return text + WrapText(absl::StrCat("not shown: ", names, " (--wide)\n"));
}

std::string ColumnKey(absl::string_view header) {
  std::string key;
  for (const char c : header.substr(0, header.find('('))) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '/' ||
        c == '.' || c == '|') {
      key += absl::ascii_tolower(static_cast<unsigned char>(c));
    } else if (!key.empty() && key.back() != '-') {
      key += '-';
    }
  }
  if (absl::EndsWith(key, "-")) key.pop_back();
  return key;
}

absl::Status CheckColumns(std::span<const std::string> names,
                          std::span<const std::string> columns) {
  std::vector<std::string> keys;
  for (const std::string& column : columns) keys.push_back(ColumnKey(column));
  for (const std::string& name : names) {
    if (absl::c_linear_search(keys, name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("is ", EscapeLine(name), ", expected columns of ",
                     absl::StrJoin(keys, ", "), DidYouMean(name, keys)));
  }
  return absl::OkStatus();
}

std::string WrapText(absl::string_view text, int indent) {
  if (Layout().wide) return std::string(text);
  const std::string margin(static_cast<size_t>(indent), ' ');
  const size_t width = std::max(Width(), margin.size() + kNarrowest);
  std::string out;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!out.empty() || line.data() != text.data()) out += "\n";
    const size_t blanks =
        std::min(std::min(line.find_first_not_of(' '), line.size()), width / 2);
    std::string prefix;
    while (prefix.size() + line.size() > width) {
      const size_t most = width - prefix.size();
      const size_t first = std::min(line.find_first_not_of(' '), line.size());
      size_t end = line.rfind(' ', most);
      // A word that is too long stays whole.
      if (end == absl::string_view::npos || end < first) {
        end = line.find(' ', std::max(most, first));
      }
      if (end == absl::string_view::npos) break;
      absl::StrAppend(&out, prefix,
                      absl::StripTrailingAsciiWhitespace(line.substr(0, end)),
                      "\n");
      line = absl::StripLeadingAsciiWhitespace(line.substr(end));
      prefix = std::string(blanks, ' ') + margin;
    }
    absl::StrAppend(&out, prefix, line);
  }
  return out;
}

}  // namespace weir
