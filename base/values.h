// SPDX-License-Identifier: Apache-2.0
// Parsers of values of options and fields. Messages name what was found and
// expected. Errors are InvalidArgument.
#ifndef WEIR_BASE_VALUES_H_
#define WEIR_BASE_VALUES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// Parses a whole number from 1 to 2147483647.
absl::StatusOr<uint32_t> ParseCount(absl::string_view text);

// Parses the same, also as "8k" or "1M" (1024 and 1048576 of them), as lengths
// of contexts are written.
absl::StatusOr<uint32_t> ParseSize(absl::string_view text);

// Parses comma-separated counts of at least `lowest`: "7,8,8,7".
absl::StatusOr<std::vector<uint32_t>> ParseCounts(absl::string_view text,
                                                  uint32_t lowest);

// Parses a finite number above 0.
absl::StatusOr<double> ParsePositive(absl::string_view text);

// Parses a time limit in seconds, from a millisecond to 1e9 (30 years), since
// clocks cannot count much further.
absl::StatusOr<double> ParseTimeLimit(absl::string_view text);

// Parses bytes above 0, as in "80GiB", "80e9" or "512 MiB". A letter alone is a
// binary unit, as for Slurm and GNU programs: "70G" is 70 GiB.
absl::StatusOr<double> ParseBytes(absl::string_view text);

// Parses one of several words, ignoring case.
using Choices = std::vector<std::pair<absl::string_view, int>>;
absl::StatusOr<int> ParseChoice(absl::string_view text, const Choices& choices);

}  // namespace weir

#endif  // WEIR_BASE_VALUES_H_
