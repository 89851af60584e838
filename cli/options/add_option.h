// SPDX-License-Identifier: Apache-2.0
// Adds options to a command of CLI11. Values are parsed by functions as in
// base/values.h, whose error messages, "is x, expected y", follow the name of
// the option. A target is a pointer to a variable or to a repeated field, or a
// function that takes the value.
#ifndef WEIR_CLI_OPTIONS_ADD_OPTION_H_
#define WEIR_CLI_OPTIONS_ADD_OPTION_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/values.h"

namespace weir::cli {

template <typename Target, typename Value>
void Store(const Target& target, Value&& value) {
  if constexpr (requires { target->Assign(value.begin(), value.end()); }) {
    target->Assign(value.begin(), value.end());
  } else if constexpr (std::is_pointer_v<Target>) {
    *target = std::forward<Value>(value);
  } else {
    target(std::forward<Value>(value));
  }
}

// `names`: "--pp,--pipeline-model-parallel-size", with the preferred name
// first; a name without dashes is a positional argument. `value_name` is the
// placeholder of the value in the help. `parse` returns a StatusOr.
template <typename Parse, typename Target>
CLI::Option* AddOption(CLI::App* app, const std::string& names,
                       const std::string& value_name, const std::string& help,
                       Parse parse, Target target) {
  const auto error = [parse](const std::string& text) {
    return std::string(parse(text).status().message());
  };
  const auto set = [parse, target](const std::string& text) {
    Store(target, *parse(text));
  };
  return app->add_option_function<std::string>(names, set, help)
      ->check(error)
      ->type_name(value_name);
}

// Returns InvalidArgument if the text is empty.
absl::StatusOr<std::string> ParseText(const std::string& text);

// Parses comma-separated numbers of at least 0: "7,8,8,7".
absl::StatusOr<std::vector<uint32_t>> ParseNumbers(const std::string& text);

// Parses one or more words that commas or spaces separate.
absl::StatusOr<std::vector<int>> ParseChoices(const std::string& text,
                                              const Choices& choices);

template <typename Target>
CLI::Option* AddText(CLI::App* app, const std::string& names,
                     const std::string& value_name, const std::string& help,
                     Target target) {
  return AddOption(app, names, value_name, help, ParseText, target);
}

template <typename Target>
CLI::Option* AddCount(CLI::App* app, const std::string& names,
                      const std::string& help, Target target) {
  return AddOption(app, names, "N", help, ParseCount, target);
}

// Adds a time limit, see ParseTimeLimit.
template <typename Target>
CLI::Option* AddSeconds(CLI::App* app, const std::string& names,
                        const std::string& help, Target target) {
  return AddOption(app, names, "SECONDS", help, ParseTimeLimit, target);
}

// Adds an option whose value is one of several words.
template <typename Value, typename Target>
CLI::Option* AddChoice(
    CLI::App* app, const std::string& names, const std::string& help,
    const std::vector<std::pair<absl::string_view, Value>>& choices,
    Target target) {
  Choices numbers;
  for (const auto& [word, value] : choices) {
    numbers.emplace_back(word, static_cast<int>(value));
  }
  const auto parse =
      [numbers](absl::string_view text) -> absl::StatusOr<Value> {
    ASSIGN_OR_RETURN(const int number, ParseChoice(text, numbers));
    return static_cast<Value>(number);
  };
  const std::string words =
      absl::StrJoin(choices, "|", [](std::string* out, const auto& choice) {
        absl::StrAppend(out, choice.first);
      });
  return AddOption(app, names, words, help, parse, target);
}

// Adds "--dropout", "--dropout=false".
template <typename Target>
CLI::Option* AddSwitch(CLI::App* app, const std::string& names,
                       const std::string& help, Target target) {
  const auto error = [](const std::string& text) {
    const Choices choices = {{"true", 1}, {"false", 0}};
    return std::string(ParseChoice(text, choices).status().message());
  };
  const auto set = [target](int64_t count) { Store(target, count > 0); };
  return app->add_flag_function(names, set, help)->check(error)->take_last();
}

// Checks the values of an option and sets its target. Returns InvalidArgument,
// "is x, expected y".
absl::Status RunOption(CLI::Option* option);

// The same for this value.
absl::Status SetOption(CLI::Option* option, const std::string& text);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_ADD_OPTION_H_
