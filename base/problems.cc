// SPDX-License-Identifier: Apache-2.0
#include "base/problems.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"

namespace weir {
namespace {

// A damaged file may have a problem in each of its millions of lines.
constexpr size_t kMaxProblems = 50;

}  // namespace

void Problems::Add(absl::string_view field, absl::string_view what) {
  if (messages_.size() > kMaxProblems) return;
  if (messages_.size() == kMaxProblems) {
    messages_.push_back(
        absl::StrCat(EscapeLine(where_), ": further problems are not shown"));
    return;
  }
  messages_.push_back(absl::StrCat(EscapeLine(where_), ": ", EscapeLine(field),
                                   field.empty() ? "" : " ", what));
}

void Problems::CheckRange(absl::string_view field, double value, double low,
                          double high) {
  if (value >= low && value <= high) return;
  Add(field,
      absl::StrFormat("is %.12g, expected %.12g to %.12g", value, low, high));
}

void Problems::CheckPositive(absl::string_view field, double value) {
  if (std::isfinite(value) && value > 0) return;
  Add(field, absl::StrFormat("is %.12g, expected a number above 0", value));
}

absl::Status Problems::ToStatus() const {
  if (empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(messages_, "\n"));
}

}  // namespace weir
