// SPDX-License-Identifier: Apache-2.0
#include "cli/reference/example_lines.h"

#include <wordexp.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cli/options/add_option.h"
#include "cli/options/program.h"

namespace weir::cli {
namespace {

constexpr absl::string_view kDots = "...";

bool IsTaken(const std::string& line, const std::vector<CLI::App*>& programs) {
  return std::any_of(programs.begin(), programs.end(), [&](CLI::App* program) {
    return ParseExampleLine(line, program).ok();
  });
}

// The kinds of lines of a file of examples.
struct ExampleFile {
  std::vector<std::string> lines, beginnings, ends;
};

ExampleFile ReadExampleFile(absl::string_view text) {
  ExampleFile file;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() || absl::StartsWith(line, "#")) continue;
    if (absl::ConsumePrefix(&line, kDots)) {
      file.ends.emplace_back(line);
    } else if (absl::ConsumeSuffix(&line, absl::StrCat(" ", kDots))) {
      file.beginnings.emplace_back(line);
    } else {
      file.lines.emplace_back(line);
    }
  }
  return file;
}

}  // namespace

absl::StatusOr<const CLI::App*> ParseExampleLine(const std::string& line,
                                                 CLI::App* program) {
  wordexp_t words;
  if (wordexp(line.c_str(), &words, WRDE_NOCMD) != 0) {
    return absl::InvalidArgumentError("is no line of words");
  }
  const absl::Cleanup free = [&] { wordfree(&words); };
  if (words.we_wordc == 0 || words.we_wordv[0] != program->get_name()) {
    return absl::InvalidArgumentError(
        absl::StrCat("does not begin with ", program->get_name()));
  }
  RETURN_IF_ERROR(
      ParseArguments(static_cast<int>(words.we_wordc), words.we_wordv, program)
          .status());
  const CLI::App* command = program;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
  }
  return command;
}

absl::StatusOr<std::vector<std::string>> ExampleLines(
    absl::string_view text, const std::vector<CLI::App*>& programs) {
  ExampleFile file = ReadExampleFile(text);
  std::vector<std::string> wrong;
  for (const std::string& line : file.lines) {
    if (!IsTaken(line, programs)) wrong.push_back(line);
  }
  for (const std::string& end : file.ends) {
    const size_t size = file.lines.size();
    for (const std::string& beginning : file.beginnings) {
      std::string line = absl::StrCat(beginning, end);
      if (IsTaken(line, programs)) file.lines.push_back(std::move(line));
    }
    if (file.lines.size() == size) wrong.push_back(absl::StrCat(kDots, end));
  }
  if (wrong.empty()) return std::move(file.lines);
  return absl::InvalidArgumentError(absl::StrCat(
      "lines that no command takes:\n", absl::StrJoin(wrong, "\n")));
}

}  // namespace weir::cli
