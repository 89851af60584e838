// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/options/program.h"

namespace weir::cli {
namespace {

constexpr size_t kIndent = 26;
constexpr size_t kWidth = 80;

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
    } else {
      const size_t gap = column < kIndent ? kIndent - column : 1;
      absl::StrAppend(&text, std::string(gap, ' '), word);
      column += gap + word.size();
    }
  }
  return absl::StrCat(text, "\n");
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const std::string help = Formatter::make_help(app, std::move(name), mode);
    return absl::StrCat(absl::StripTrailingAsciiWhitespace(
                            absl::StrReplaceAll(help, {{"\n\n\n", "\n\n"}})),
                        "\n");
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    return absl::StrCat("\n", Formatter::make_usage(app, std::move(name)));
  }

  std::string make_option(const CLI::Option* option,
                          bool is_positional) const override {
    // A positional argument is its own placeholder.
    const std::string value = is_positional ? "" : option->get_type_name();
    const std::string fallback = option->get_default_str();
    const bool required = !is_positional && option->get_required();
    // CLI11 appends the value of a negated switch to its name.
    const std::string name = absl::StrReplaceAll(
        make_option_name(option, is_positional), {{"{false}", ""}});
    return Row(
        absl::StrCat(name, value.empty() ? "" : " ", value),
        absl::StrCat(option->get_description(), required ? " (required)" : "",
                     fallback.empty() ? "" : " [", fallback,
                     fallback.empty() ? "" : "]"));
  }

  // Puts the options of all commands before the commands: CLI11 does not list
  // options that a command inherits.
  std::string make_subcommands(const CLI::App* app,
                               CLI::AppFormatMode mode) const override {
    const CLI::App* program = app;
    while (program->get_parent() != nullptr) program = program->get_parent();
    const auto options = program->get_options([&](const CLI::Option* option) {
      return app != program && option->get_group() == kOptionsOfAllCommands;
    });
    return absl::StrCat(options.empty()
                            ? ""
                            : make_group(kOptionsOfAllCommands,
                                         /*is_positional=*/false, options),
                        Formatter::make_subcommands(app, mode));
  }

  // Lists the commands of a group instead of the group.
  std::string make_subcommand(const CLI::App* command) const override {
    const auto commands = command->get_subcommands({});
    std::string text;
    for (const CLI::App* each : commands) text += make_subcommand(each);
    if (!commands.empty()) return text;
    const std::string name = FullName(*command);
    return Row(name.substr(name.find(' ') + 1), command->get_description());
  }
};

}  // namespace

std::shared_ptr<CLI::Formatter> MakeHelpFormatter() {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->label("SUBCOMMAND", "COMMAND");
  return formatter;
}

}  // namespace weir::cli
