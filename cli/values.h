// SPDX-License-Identifier: Apache-2.0
// Reads the values of flags; messages say what was found and expected.
#ifndef WEIR_CLI_VALUES_H_
#define WEIR_CLI_VALUES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir {

// A whole number from 1 to 2147483647.
absl::StatusOr<uint32_t> ParseCount(absl::string_view text);

// Comma-separated counts from `lowest` on: "7,8,8,7".
absl::StatusOr<std::vector<uint32_t>> ParseCounts(absl::string_view text,
                                                  uint32_t lowest);

// A finite number above 0.
absl::StatusOr<double> ParsePositive(absl::string_view text);

// A time limit in seconds, from a millisecond to 1e9 (30 years): clocks cannot
// count much further.
absl::StatusOr<double> ParseTimeLimit(absl::string_view text);

// One of some words, without regard to case.
using Choices = std::vector<std::pair<absl::string_view, int>>;
absl::StatusOr<int> ParseChoice(absl::string_view text, const Choices& choices);

}  // namespace weir

#endif  // WEIR_CLI_VALUES_H_
