// SPDX-License-Identifier: Apache-2.0
// Builders of option tables, and the options that many commands share.
#ifndef WEIR_CLI_OPTIONS_OPTION_GROUP_H_
#define WEIR_CLI_OPTIONS_OPTION_GROUP_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/values.h"
#include "cli/options/options.h"

namespace weir::cli {

// Appends options to a group; each returns the option for further settings.
class Group {
 public:
  Group(absl::string_view title, Options* options)
      : title_(title), options_(options) {}

  Option& Text(absl::string_view names, absl::string_view value,
               absl::string_view help, std::string* target) {
    return Add(names, value, help, [target](const std::string& text) {
      if (text.empty()) return absl::InvalidArgumentError("is empty");
      *target = text;
      return absl::OkStatus();
    });
  }

  Option& Count(absl::string_view names, absl::string_view help,
                std::function<void(uint32_t)> set) {
    return Add(names, "N", help,
               [set = std::move(set)](const std::string& text) {
                 ASSIGN_OR_RETURN(const uint32_t count, ParseCount(text));
                 set(count);
                 return absl::OkStatus();
               });
  }

  // Adds a time limit, see ParseTimeLimit.
  Option& Seconds(absl::string_view names, absl::string_view help,
                  double* target) {
    return Add(names, "SECONDS", help, [target](const std::string& text) {
      ASSIGN_OR_RETURN(*target, ParseTimeLimit(text));
      return absl::OkStatus();
    });
  }

  Option& Choice(absl::string_view names, absl::string_view help,
                 const Choices& choices, std::function<void(int)> set) {
    const std::string words =
        absl::StrJoin(choices, "|", [](std::string* out, const auto& choice) {
          absl::StrAppend(out, choice.first);
        });
    return Add(names, words, help,
               [choices, set = std::move(set)](const std::string& text) {
                 ASSIGN_OR_RETURN(const int value, ParseChoice(text, choices));
                 set(value);
                 return absl::OkStatus();
               });
  }

  Option& Switch(absl::string_view names, absl::string_view help,
                 std::function<void(bool)> set) {
    return Add(
        names, "", help, [set = std::move(set)](const std::string& text) {
          ASSIGN_OR_RETURN(const int value,
                           ParseChoice(text, {{"true", 1}, {"false", 0}}));
          set(value != 0);
          return absl::OkStatus();
        });
  }

  Option& Add(absl::string_view names, absl::string_view value,
              absl::string_view help,
              std::function<absl::Status(const std::string&)> set) {
    Option option;
    option.group = std::string(title_);
    option.names = std::string(names);
    option.value = std::string(value);
    option.help = std::string(help);
    option.set = std::move(set);
    options_->push_back(std::move(option));
    return options_->back();
  }

 private:
  absl::string_view title_;
  Options* options_;
};

// `fallback`, `microbatches` and `batches` are shown as the defaults.
void AddPipeline(Options* options, Scenario* scenario,
                 absl::string_view fallback);
void AddMicrobatches(Options* options, Scenario* scenario,
                     absl::string_view microbatches, absl::string_view batches);
void AddFormat(Options* options, OutputFlags* output, bool csv);
void AddMethod(absl::string_view help, absl::string_view title, bool* fast,
               Options* options);
// Adds --force, for commands that write files.
void AddForce(Options* options, OutputFlags* output);
void AddMessages(Options* options, OutputFlags* output);

// Returns the options of a command whose first argument is a name.
Options OptionsOfNamed(absl::string_view name, absl::string_view help,
                       Flags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_OPTION_GROUP_H_
