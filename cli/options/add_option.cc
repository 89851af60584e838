// SPDX-License-Identifier: Apache-2.0
#include "cli/options/add_option.h"

#include "absl/strings/strip.h"

namespace weir::cli {

absl::StatusOr<std::string> ParseText(const std::string& text) {
  if (text.empty()) return absl::InvalidArgumentError("is empty");
  return text;
}

absl::StatusOr<std::vector<uint32_t>> ParseNumbers(const std::string& text) {
  return ParseCounts(text, 0);
}

absl::Status RunOption(CLI::Option* option) {
  try {
    option->run_callback();
  } catch (const CLI::Success&) {
    // Asks for the version.
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(
        absl::StripPrefix(error.what(), option->get_name() + ": "));
  }
  return absl::OkStatus();
}

absl::Status SetOption(CLI::Option* option, const std::string& text) {
  option->clear();
  option->add_result(text);
  return RunOption(option);
}

}  // namespace weir::cli
