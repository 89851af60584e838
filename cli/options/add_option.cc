// SPDX-License-Identifier: Apache-2.0
#include "cli/options/add_option.h"

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace weir::cli {

absl::StatusOr<std::string> ParseText(const std::string& text) {
  if (text.empty()) return absl::InvalidArgumentError("is empty");
  return text;
}

absl::StatusOr<std::vector<uint32_t>> ParseNumbers(const std::string& text) {
  return ParseCounts(text, 0);
}

absl::StatusOr<std::vector<int>> ParseChoices(const std::string& text,
                                              const Choices& choices) {
  std::vector<int> values;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(", "), absl::SkipWhitespace())) {
    ASSIGN_OR_RETURN(values.emplace_back(), ParseChoice(word, choices));
  }
  if (values.empty()) return absl::InvalidArgumentError("is empty");
  return values;
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
