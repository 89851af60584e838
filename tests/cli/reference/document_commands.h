// SPDX-License-Identifier: Apache-2.0
// Commands in the blocks of a document, and what they print according to it.
#ifndef WEIR_TESTS_CLI_REFERENCE_DOCUMENT_COMMANDS_H_
#define WEIR_TESTS_CLI_REFERENCE_DOCUMENT_COMMANDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir::cli::document_runs_test {

using Lines = std::vector<std::string>;

struct Command {
  std::string text;
  std::optional<Lines> output;  // expected
  size_t begin = 0;             // line of the document with its first output
};

// Lines of a fenced block, or of an indented one, with continued lines joined.
struct Block {
  Lines lines;
  std::vector<size_t> ends;  // [line]: number of the document's line after it
};

std::vector<Block> BlocksOf(absl::string_view document);

// Returns the commands in their order. A block shows output if its commands
// begin with "$ "; in other blocks, lines that do not begin with the name of a
// program are no commands.
std::vector<Command> CommandsOf(absl::string_view document);

// Compares a line that was printed with one of a document, in which "..."
// stands for any text.
bool LineMatches(absl::string_view found, absl::string_view expected);

// Compares the lines from found[i] on with those from expected[k] on, in which
// a line "..." stands for any number of lines.
bool Matches(const Lines& found, size_t i, const Lines& expected, size_t k);

// Returns true if the document shows that a command fails: its output has a
// line such as "error: ..." or "error order: ...".
bool ShowsError(const Command& command);

}  // namespace weir::cli::document_runs_test

#endif  // WEIR_TESTS_CLI_REFERENCE_DOCUMENT_COMMANDS_H_
