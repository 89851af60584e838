// SPDX-License-Identifier: Apache-2.0
#include "base/spelling.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace weir {
namespace {

bool SameLetter(char a, char b) {
  const auto plain = [](char c) {
    return c == '_' ? '-' : absl::ascii_tolower(c);
  };
  return plain(a) == plain(b);
}

}  // namespace

int EditDistance(absl::string_view a, absl::string_view b) {
  // Rows of the table for the prefixes of `a`: two rows back, the previous one,
  // the current one.
  std::vector<int> older, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    older = last;
    last = row;
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (SameLetter(a[i], b[j]) ? 0 : 1),
                             last[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && SameLetter(a[i], b[j - 1]) &&
          SameLetter(a[i - 1], b[j])) {
        row[j + 1] = std::min(row[j + 1], older[j - 1] + 1);
      }
    }
  }
  return row.back();
}

std::string NearestWord(absl::string_view word,
                        const std::vector<std::string>& known) {
  // A long word is a different kind of mistake and would take long to compare.
  if (word.size() > 64) return "";
  const size_t num_dashes = std::min(word.find_first_not_of('-'), word.size());
  const int num_letters = static_cast<int>(word.size() - num_dashes);
  const std::string* nearest = nullptr;
  int nearest_distance = std::max(1, num_letters / 3) + 1;
  for (const std::string& candidate : known) {
    const int distance = EditDistance(word, candidate);
    if (distance >= nearest_distance || distance >= num_letters) continue;
    nearest = &candidate;
    nearest_distance = distance;
  }
  return nearest == nullptr ? "" : *nearest;
}

std::string DidYouMean(absl::string_view word,
                       const std::vector<std::string>& known) {
  const std::string nearest = NearestWord(word, known);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

}  // namespace weir
