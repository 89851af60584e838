// SPDX-License-Identifier: Apache-2.0
#include "base/values.h"

#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace weir {
namespace {

constexpr double kMinTimeLimit = 0.001;
constexpr double kMaxTimeLimit = 1e9;
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

absl::Status Unexpected(absl::string_view text, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", text.empty() ? "empty" : text, ", expected ", expected));
}

absl::StatusOr<uint32_t> ParseNumber(absl::string_view text, int64_t lowest) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < lowest ||
      number > kMaxCount) {
    return Unexpected(
        text, absl::StrCat("a whole number from ", lowest, " to ", kMaxCount));
  }
  return static_cast<uint32_t>(number);
}

}  // namespace

absl::StatusOr<uint32_t> ParseCount(absl::string_view text) {
  return ParseNumber(text, 1);
}

absl::StatusOr<std::vector<uint32_t>> ParseCounts(absl::string_view text,
                                                  uint32_t lowest) {
  std::vector<uint32_t> counts;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(const uint32_t count, ParseNumber(part, lowest));
    counts.push_back(count);
  }
  return counts;
}

absl::StatusOr<double> ParsePositive(absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !std::isfinite(number) ||
      number <= 0) {
    return Unexpected(text, "a number above 0");
  }
  return number;
}

absl::StatusOr<double> ParseTimeLimit(absl::string_view text) {
  double seconds = 0;
  if (!absl::SimpleAtod(text, &seconds) ||
      !(seconds >= kMinTimeLimit && seconds <= kMaxTimeLimit)) {
    return Unexpected(text, absl::StrCat("seconds from ", kMinTimeLimit, " to ",
                                         kMaxTimeLimit));
  }
  return seconds;
}

absl::StatusOr<double> ParseBytes(absl::string_view text) {
  const size_t unit = text.find_first_not_of("0123456789.eE+-");
  const absl::string_view number = text.substr(0, unit);
  absl::string_view name =
      unit == absl::string_view::npos ? "" : text.substr(unit);
  while (absl::StartsWith(name, " ")) name.remove_prefix(1);
  static constexpr std::pair<absl::string_view, double> kUnits[] = {
      {"", 1},
      {"B", 1},
      {"K", 1024},
      {"M", 1048576.0},
      {"G", 1073741824.0},
      {"T", 1099511627776.0},
      {"kB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
      {"KiB", 1024},
      {"MiB", 1048576.0},
      {"GiB", 1073741824.0},
      {"TiB", 1099511627776.0}};
  for (const auto& [word, factor] : kUnits) {
    if (!absl::EqualsIgnoreCase(name, word)) continue;
    const auto value = ParsePositive(number);
    if (value.ok()) return factor * *value;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", text, ", expected bytes above 0, as in 80GiB or 80e9"));
}

absl::StatusOr<uint32_t> ParseSize(absl::string_view text) {
  double factor = 1;
  absl::string_view number = text;
  if (absl::ConsumeSuffix(&number, "k") || absl::ConsumeSuffix(&number, "K")) {
    factor = 1024;
  } else if (absl::ConsumeSuffix(&number, "M")) {
    factor = 1048576;
  }
  if (factor == 1) return ParseCount(text);
  double value = 0;
  const bool is_number =
      absl::SimpleAtod(number, &value) && std::isfinite(value);
  value *= factor;
  if (!is_number || value < 1 || value > kMaxCount ||
      value != std::floor(value)) {
    return Unexpected(text, "a whole number above 0, such as 8192 or 8k");
  }
  return static_cast<uint32_t>(value);
}

absl::StatusOr<int> ParseChoice(absl::string_view text,
                                const Choices& choices) {
  std::vector<absl::string_view> words;
  for (const auto& [word, value] : choices) {
    if (absl::EqualsIgnoreCase(word, text)) return value;
    words.push_back(word);
  }
  return Unexpected(text, absl::StrJoin(words, " or "));
}

}  // namespace weir
