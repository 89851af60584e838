// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/reference/document_commands.h"

#include <re2/re2.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weir::cli::document_runs_test {
namespace {

constexpr const char* kPrograms[] = {
    "weir ",  "weir-calibrate ", "./weir ",  "./weir-calibrate ",
    "./run",  "cmake ",          "python3 ", "sqlite3 ",
    "./check"};

// Returns true if a line of a block is a command, perhaps with weir at the end
// of a pipe.
bool IsCommand(absl::string_view line) {
  return std::any_of(
             std::begin(kPrograms), std::end(kPrograms),
             [&](const char* name) { return absl::StartsWith(line, name); }) ||
         (absl::StartsWith(line, "printf ") &&
          absl::StrContains(line, "| weir "));
}

// Collects the lines of blocks.
class BlockReader {
 public:
  void Read(absl::string_view line) {
    ++number_;
    if (absl::StartsWith(line, "```")) {
      is_fenced_ = !is_fenced_;
      if (is_fenced_) Begin();
      continued_ = false;
    } else if (is_fenced_) {
      Add(line);
    } else if (absl::ConsumePrefix(&line, "    ") &&
               (is_indented_ || IsCommand(line))) {
      if (!is_indented_) Begin();
      is_indented_ = true;
      Add(line);
      return;
    }
    is_indented_ = false;
  }

  std::vector<Block> Blocks() && { return std::move(blocks_); }

 private:
  void Begin() {
    blocks_.emplace_back();
    continued_ = false;
  }

  void Add(absl::string_view line) {
    Block& block = blocks_.back();
    const bool more = absl::ConsumeSuffix(&line, "\\");
    if (continued_) {
      absl::StrAppend(&block.lines.back(), " ", line);
      block.ends.back() = number_;
    } else {
      block.lines.emplace_back(line);
      block.ends.push_back(number_);
    }
    continued_ = more;
  }

  std::vector<Block> blocks_;
  bool is_fenced_ = false, is_indented_ = false, continued_ = false;
  size_t number_ = 0;
};

}  // namespace

std::vector<Block> BlocksOf(absl::string_view document) {
  BlockReader reader;
  for (absl::string_view line : absl::StrSplit(document, '\n')) {
    reader.Read(line);
  }
  return std::move(reader).Blocks();
}

std::vector<Command> CommandsOf(absl::string_view document) {
  std::vector<Command> commands;
  for (const Block& block : BlocksOf(document)) {
    bool shows_output = false;
    for (size_t i = 0; i < block.lines.size(); ++i) {
      const std::string& line = block.lines[i];
      absl::string_view text = line;
      if (absl::ConsumePrefix(&text, "$ ")) {
        shows_output = true;
        commands.push_back({std::string(text), Lines(), block.ends[i]});
      } else if (shows_output) {
        commands.back().output->push_back(line);
      } else if (IsCommand(line)) {
        commands.push_back({line, std::nullopt});
      }
    }
  }
  return commands;
}

bool LineMatches(absl::string_view found, absl::string_view expected) {
  const Lines parts = absl::StrSplit(expected, "...");
  if (parts.size() == 1) return found == expected;
  if (!absl::ConsumePrefix(&found, parts.front())) return false;
  if (!absl::ConsumeSuffix(&found, parts.back())) return false;
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    const size_t at = found.find(parts[i]);
    if (at == absl::string_view::npos) return false;
    found.remove_prefix(at + parts[i].size());
  }
  return true;
}

bool Matches(const Lines& found, size_t i, const Lines& expected, size_t k) {
  if (k == expected.size()) return i == found.size();
  if (expected[k] == "...") {
    for (size_t next = i; next <= found.size(); ++next) {
      if (Matches(found, next, expected, k + 1)) return true;
    }
    return false;
  }
  return i < found.size() && LineMatches(found[i], expected[k]) &&
         Matches(found, i + 1, expected, k + 1);
}

bool ShowsError(const Command& command) {
  return command.output.has_value() &&
         std::any_of(command.output->begin(), command.output->end(),
                     [](const std::string& line) {
                       return RE2::PartialMatch(
                           line, "^(::error |error( [a-z-]+)?: )");
                     });
}

}  // namespace weir::cli::document_runs_test
