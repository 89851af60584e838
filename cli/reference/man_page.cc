// SPDX-License-Identifier: Apache-2.0
#include "cli/reference/man_page.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/options/add_option.h"
#include "cli/options/command_tree.h"
#include "cli/options/program.h"

namespace weir::cli {
namespace {

std::string Bold(absl::string_view text) {
  return absl::StrCat("\\fB", EscapeRoff(text), "\\fR");
}

std::string Italic(absl::string_view text) {
  return absl::StrCat("\\fI", EscapeRoff(text), "\\fR");
}

std::string Synopsis(const CLI::App& app) {
  std::string text = Bold(FullName(app));
  if (!AllCommands(app).empty()) {
    return absl::StrCat(text, " ", Italic("COMMAND"), " [", Italic("OPTIONS"),
                        "]\n");
  }
  absl::StrAppend(&text, " [", Italic("OPTIONS"), "]");
  for (const CLI::Option* option : PositionalsOf(app)) {
    const bool required = option->get_required();
    absl::StrAppend(&text, required ? " " : " [",
                    Italic(option->get_name(/*positional=*/true)),
                    required ? "" : "]");
  }
  return absl::StrCat(text, "\n");
}

std::string OptionItem(const CLI::Option& option,
                       const OptionExamples& examples) {
  std::string names =
      option.get_positional()
          ? Italic(option.get_name(/*positional=*/true))
          : absl::StrJoin(NamesOf(option), ", ",
                          [](std::string* out, const std::string& name) {
                            absl::StrAppend(out, Bold(name));
                          });
  if (!option.get_positional() && !option.get_type_name().empty()) {
    absl::StrAppend(&names, " ", Italic(option.get_type_name()));
  }
  std::string text =
      absl::StrCat(".TP\n", names, "\n", EscapeRoff(option.get_description()));
  if (option.get_required() && !option.get_positional()) {
    absl::StrAppend(&text, " (required)");
  }
  if (!option.get_default_str().empty()) {
    absl::StrAppend(&text, " [", EscapeRoff(option.get_default_str()), "]");
  }
  if (const auto example = examples.find(&option); example != examples.end()) {
    absl::StrAppend(&text, "\n.br\nExample: ", EscapeRoff(example->second));
  }
  return absl::StrCat(text, "\n");
}

// Returns the options by group, in the order in which the groups first occur.
std::string OptionsByGroup(const CLI::App& app,
                           const OptionExamples& examples) {
  std::vector<std::string> groups;
  const std::vector<const CLI::Option*> options = OptionsOf(app);
  for (const CLI::Option* option : options) {
    const std::string& group = option->get_group();
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) {
      groups.push_back(group);
    }
  }
  std::string text;
  for (const std::string& group : groups) {
    if (groups.size() > 1) {
      absl::StrAppend(&text, ".SS ", EscapeRoff(group), "\n");
    }
    for (const CLI::Option* option : options) {
      if (option->get_group() == group) {
        absl::StrAppend(&text, OptionItem(*option, examples));
      }
    }
  }
  return text;
}

std::string Commands(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : AllCommands(app)) {
    absl::StrAppend(&text, ".TP\n", Bold(NameInProgram(*command)), "\n",
                    EscapeRoff(command->get_description()), "\n");
  }
  return text;
}

// Returns the sections of the footer: "Examples:" and indented lines, and
// paragraphs.
std::string Footer(const CLI::App& app) {
  std::string text, notes;
  for (absl::string_view block : absl::StrSplit(app.get_footer(), "\n\n")) {
    if (absl::ConsumePrefix(&block, "Examples:\n")) {
      absl::StrAppend(&text, ".SH EXAMPLES\n.nf\n");
      for (absl::string_view line : absl::StrSplit(block, '\n')) {
        absl::StrAppend(
            &text, EscapeRoff(absl::StripLeadingAsciiWhitespace(line)), "\n");
      }
      absl::StrAppend(&text, ".fi\n");
    } else if (!block.empty()) {
      absl::StrAppend(&notes, ".PP\n", EscapeRoff(block), "\n");
    }
  }
  if (!notes.empty()) absl::StrAppend(&text, ".SH NOTES\n", notes);
  return text;
}

std::string SeeAlso(const CLI::App& app) {
  std::vector<std::string> pages;
  for (const CLI::App* command : AllCommands(app)) {
    pages.push_back(absl::StrCat(Bold(ManPageName(*command)), "(1)"));
  }
  const CLI::App* program = &app;
  while (program->get_parent() != nullptr) program = program->get_parent();
  if (program != &app) {
    pages.push_back(absl::StrCat(Bold(ManPageName(*program)), "(1)"));
  }
  return absl::StrCat(".SH SEE ALSO\n", absl::StrJoin(pages, ", "), "\n");
}

// Returns the first sentence without its final dot.
std::string Summary(const CLI::App& app) {
  std::string summary =
      absl::StrReplaceAll(app.get_description(), {{"\n", " "}});
  absl::string_view rest = summary;
  absl::ConsumeSuffix(&rest, ".");
  return std::string(rest);
}

}  // namespace

std::string EscapeRoff(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"},
                                                   {"-", "\\-"},
                                                   {"'", "\\(aq"},
                                                   {"`", "\\(ga"},
                                                   {"^", "\\(ha"},
                                                   {"~", "\\(ti"}});
  // A dot at the beginning of a line begins a request.
  if (!escaped.empty() && escaped[0] == '.') escaped.insert(0, "\\&");
  return absl::StrReplaceAll(escaped, {{"\n.", "\n\\&."}});
}

std::string ManPageName(const CLI::App& app) {
  return absl::StrReplaceAll(FullName(app), {{" ", "-"}});
}

std::string ManPage(const CLI::App& app, absl::string_view version,
                    const OptionExamples& examples) {
  const std::string name = ManPageName(app);
  std::string text = absl::StrCat(
      ".TH ", absl::AsciiStrToUpper(EscapeRoff(name)), " 1 \"\" \"",
      EscapeRoff(version), "\" \"User Commands\"\n.SH NAME\n", EscapeRoff(name),
      " \\- ", EscapeRoff(Summary(app)), "\n.SH SYNOPSIS\n", Synopsis(app));
  if (!AllCommands(app).empty()) {
    absl::StrAppend(&text, ".SH COMMANDS\n", Commands(app));
  }
  const std::vector<const CLI::Option*> positionals = PositionalsOf(app);
  if (!positionals.empty()) absl::StrAppend(&text, ".SH ARGUMENTS\n");
  for (const CLI::Option* option : positionals) {
    absl::StrAppend(&text, OptionItem(*option, examples));
  }
  const std::string options = OptionsByGroup(app, examples);
  if (!options.empty()) absl::StrAppend(&text, ".SH OPTIONS\n", options);
  return absl::StrCat(text, Footer(app), SeeAlso(app));
}

}  // namespace weir::cli
