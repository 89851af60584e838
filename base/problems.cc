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

void Problems::AddLine(std::string message) {
  if (messages_.size() > kMaxProblems) return;
  if (messages_.size() == kMaxProblems) {
    message =
        absl::StrCat(EscapeLine(where_), ": further problems are not shown");
  }
  messages_.push_back(std::move(message));
}

void Problems::Add(absl::string_view field, absl::string_view what) {
  AddAt(0, field, what);
}

void Problems::AddAt(int line, absl::string_view field,
                     absl::string_view what) {
  std::string where = EscapeLine(where_);
  if (line > 0) absl::StrAppend(&where, ":", line);
  AddLine(absl::StrCat(where, ": ", EscapeLine(field), field.empty() ? "" : " ",
                       what));
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
