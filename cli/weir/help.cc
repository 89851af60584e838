// SPDX-License-Identifier: Apache-2.0
// Simulates training with one schedule: time, memory, what limits.
//
// usage: weir simulate [SCENARIO] [OPTIONS]
//
// examples:
//   weir simulate pipedream-2bw-gpt-2.2b --schedule 1f1b
//
// Model:
//   --model M             preset, or file: config.json, textproto, graph
#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/weir/command_table.h"

namespace weir::cli {
namespace {

constexpr size_t kIndent = 26;
constexpr size_t kWidth = 80;

bool IsPositional(const Option& option) { return option.names[0] != '-'; }

// Returns two columns. The right one is wrapped, and starts on the next line if
// the left one is too long.
std::string Row(const std::string& left, const std::string& right) {
  std::string text = absl::StrCat("  ", left);
  size_t column = text.size();
  if (column + 2 > kIndent) column = kWidth;
  for (absl::string_view word : absl::StrSplit(right, ' ')) {
    if (column + 1 + word.size() > kWidth) {
      absl::StrAppend(&text, "\n", std::string(kIndent, ' '), word);
      column = kIndent + word.size();
    } else if (column < kIndent) {
      absl::StrAppend(&text, std::string(kIndent - column, ' '), word);
      column = kIndent + word.size();
    } else {
      absl::StrAppend(&text, " ", word);
      column += 1 + word.size();
    }
  }
  return absl::StrCat(text, "\n");
}

std::string OptionRow(const Option& option) {
  std::string left = absl::StrJoin(AllNames(option), ", ");
  if (!option.value.empty()) absl::StrAppend(&left, " ", option.value);
  std::string right = option.help;
  if (!option.fallback.empty()) {
    absl::StrAppend(&right, " [", option.fallback, "]");
  }
  return Row(left, right);
}

// Returns the rows of all options, with groups in the order of their first
// option.
std::string OptionRows(const Options& options) {
  std::vector<std::string> groups;
  std::string text;
  for (const Option& first : options) {
    if (std::find(groups.begin(), groups.end(), first.group) != groups.end()) {
      continue;
    }
    groups.push_back(first.group);
    absl::StrAppend(&text, "\n", first.group, first.group.empty() ? "" : ":\n");
    for (const Option& option : options) {
      if (option.group == first.group) {
        absl::StrAppend(&text, OptionRow(option));
      }
    }
  }
  return text;
}

}  // namespace

std::string HelpText(absl::string_view command, absl::string_view summary,
                     const std::vector<std::string>& examples,
                     const Options& options) {
  std::string text = absl::StrCat(summary, "\n\nusage: ", command);
  for (const Option& option : options) {
    if (!IsPositional(option)) continue;
    const bool required = option.required;
    absl::StrAppend(&text, required ? " " : " [", option.names,
                    required ? "" : "]");
  }
  absl::StrAppend(&text, " [OPTIONS]\n\nexamples:\n");
  for (const std::string& example : examples) {
    absl::StrAppend(&text, "  ", example, "\n");
  }
  return absl::StrCat(text, OptionRows(options));
}

std::string HelpText(const CommandInfo& command) {
  Flags flags;
  std::vector<std::string> examples;
  for (absl::string_view example : command.examples) {
    examples.push_back(absl::StrCat("weir ", example));
  }
  return HelpText(absl::StrCat("weir ", command.name), command.summary,
                  examples, command.options(&flags));
}

std::string HelpTextOfGroup(absl::string_view first_word) {
  const std::string start = absl::StrCat(first_word, " ");
  std::string rows, examples;
  for (const CommandInfo& command : AllCommands()) {
    if (!absl::StartsWith(command.name, start)) continue;
    absl::StrAppend(
        &rows, Row(std::string(command.name), std::string(command.summary)));
    absl::StrAppend(&examples, "  weir ", command.examples.front(), "\n");
  }
  if (rows.empty()) return "";
  return absl::StrCat("usage: weir ", start, "COMMAND [OPTIONS]\n\nexamples:\n",
                      examples, "\nCommands:\n", rows);
}

std::string HelpText() {
  std::string text =
      "Simulates pipeline-parallel training: how long a step takes, how much "
      "memory\nevery GPU needs, and why.\n\nusage: weir COMMAND "
      "[OPTIONS]\n\nexamples:\n"
      "  weir compare pipedream-2bw-gpt-2.2b --schedule gpipe,pipedream-2bw\n"
      "  weir schedule show 1f1b --pp 4 --microbatches 8\n\nCommands:\n";
  for (const CommandInfo& command : AllCommands()) {
    absl::StrAppend(
        &text, Row(std::string(command.name), std::string(command.summary)));
  }
  absl::StrAppend(
      &text,
      Row("help [COMMAND]", "Shows this help, or the options of a command."),
      Row("--version [--json]", "Shows the version."),
      "\nExit codes: 0 success, 1 negative result (does not fit, deadlock), 2 "
      "usage or\ninput error, 3 a program or device is missing, 70 a bug in "
      "weir, 129, 130 or 143\nterminated by SIGHUP, SIGINT or SIGTERM.\n");
  return text;
}

}  // namespace weir::cli
