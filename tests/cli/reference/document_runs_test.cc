// SPDX-License-Identifier: Apache-2.0
// Runs the commands in the fenced blocks of documents, document by document and
// in their order, and compares the output where a block shows it.
//
// A block shows output if its commands begin with "$ ": what they print on
// standard output or, if that is nothing, on standard error. There, "..."
// stands for any text within a line, and a line "..." for any number of lines.
// With WEIR_UPDATE_GOLDENS=1, outputs that differ are replaced in the document.
// Other commands must end with 0, or with 1 (a negative answer). Files that a
// reader has are prepared in PrepareFiles; commands that need a GPU, a cluster,
// a browser, a file of a measurement or minutes are in kSkipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "tests/cli/weir/program.h"
#include "tests/golden.h"

namespace weir::cli::document_runs_test {

using Lines = std::vector<std::string>;

struct Command {
  std::string text;
  std::optional<Lines> output;  // expected
  size_t begin = 0;             // line of the document with its first output
};

// Parts of commands, and why they are not run.
struct Skipped {
  const char* part;
  const char* reason;
};
constexpr Skipped kSkipped[] = {
    {"weir-calibrate", "needs a GPU, or minutes"},
    {"cmake ", "builds"},
    {"./check", "builds"},
    {"./run init", "asks on a terminal"},
    {"weir live", "runs until it is interrupted"},
    {"weir train-study", "takes minutes"},
    {"--slurm", "needs a cluster"},
    {"timeline.json.gz", "needs a recorded trace"},
    {"trace.json.gz", "needs a recorded trace"},
    {"--costs measured.textproto", "needs a recorded trace"},
    {"gpt3.csv", "needs a measurement"},
    {"timeline-AR.json.gz", "needs a recorded trace"},
    {"ar.textproto", "needs a recorded trace"},
    {"measured.csv", "needs a measurement"},
    {"--replay measured.pb --against predicted.pb", "needs a recorded trace"},
    {"replay.pb", "needs weir-calibrate"},
    {"runs.csv", "needs measurements"},
    {"gemm.csv", "needs measurements"},
    {"x1.textproto", "needs measurements"},
    {"profile.csv", "needs measurements"},
    {"errors.csv", "needs measurements"},
    {"run.args", "needs a file of Megatron-LM"},
    {"plans.json", "needs a plan"},
    {"weir-sweep", "needs a sweep"},
    {".pdf", "needs rsvg-convert"},
    {"mixtral-8x22b", "takes a minute"},
    {"--nodes 64 --topology", "takes a minute"},
    {"deepseek-v3", "takes ten seconds"},
    {"...", "is abbreviated"},
};

const char* WhySkipped(const std::string& command) {
  for (const Skipped& skipped : kSkipped) {
    if (absl::StrContains(command, skipped.part)) return skipped.reason;
  }
  return nullptr;
}

// Returns true if a line of a block is a command of weir, perhaps at the end of
// a pipe.
bool RunsWeir(absl::string_view line) {
  return absl::StartsWith(line, "weir ") || absl::StartsWith(line, "./run") ||
         (absl::StartsWith(line, "printf ") &&
          absl::StrContains(line, "| weir "));
}

// Lines of a fenced block, with continued lines joined.
struct Block {
  Lines lines;
  std::vector<size_t> ends;  // [line]: number of the document's line after it
};

std::vector<Block> BlocksOf(const std::string& text) {
  std::vector<Block> blocks;
  bool inside = false, continued = false;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (absl::StartsWith(line, "```")) {
      inside = !inside;
      if (inside) blocks.emplace_back();
      continued = false;
    } else if (inside) {
      Block& block = blocks.back();
      const bool more = absl::ConsumeSuffix(&line, "\\");
      if (continued) {
        absl::StrAppend(&block.lines.back(), " ", line);
        block.ends.back() = number;
      } else {
        block.lines.emplace_back(line);
        block.ends.push_back(number);
      }
      continued = more;
    }
  }
  return blocks;
}

std::vector<Command> CommandsOf(const std::string& document) {
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
      } else if (RunsWeir(line)) {
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

// Returns the folder of a document, with programs named weir and ./run and with
// the files that documents assume.
std::string PrepareFiles(const std::string& name) {
  const std::string folder = absl::StrCat(TestFolder(), "/", name);
  const std::string script = ReadFile(WEIR_SOURCE_DIR "/run").value_or("");
  EXPECT_TRUE(absl::StrContains(script, "interleaved-1f1b,zb-h1,zb-v"));
  EXPECT_TRUE(
      WriteFile(absl::StrCat(folder, "/bin/weir"),
                absl::StrCat("#!/bin/sh\nexec '", WEIR_PROGRAM, "' \"$@\"\n"))
          .ok());
  // Without arguments it runs what the script does after building.
  EXPECT_TRUE(
      WriteFile(absl::StrCat(folder, "/run"),
                "#!/bin/sh\n[ $# -eq 0 ] || exec weir \"$@\"\n"
                "weir compare llama-3-70b-64-h100 --schedule "
                "gpipe,1f1b,interleaved-1f1b,zb-h1,zb-v --out out/compare.pb "
                "--trace out/ --force\n")
          .ok());
  const std::string commands = absl::StrCat(
      "cd '", folder, "' && chmod +x run bin/weir && mkdir -p out && cp '",
      WEIR_SOURCE_DIR, "/models/presets/mistral-7b-v0.1.json' config.json && '",
      WEIR_PROGRAM,
      "' scenario show pipedream-2bw-gpt-2.2b > my.textproto && '",
      WEIR_PROGRAM,
      "' compare given-costs-1f1b --schedule 1f1b,gpipe --out out/compare.pb "
      "> /dev/null 2>&1 && cp out/compare.pb measured.pb && '",
      WEIR_PROGRAM,
      "' schedule convert 1f1b --pp 4 --microbatches 8 -o my_schedule.csv 2> "
      "/dev/null && "
      "echo mine > notes.txt");
  EXPECT_EQ(std::system(commands.c_str()), 0) << commands;
  return folder;
}

// Returns the command as it is run: a scenario for the placeholder, a time
// limit for searches whose output is not shown.
std::string RunnableText(const Command& command) {
  std::string text =
      absl::StrReplaceAll(command.text, {{"SCENARIO", "llama-3-70b-64-h100"}});
  if (absl::StartsWith(text, "weir plan ") && !command.output.has_value()) {
    text.insert(sizeof("weir plan") - 1, " --time-limit 1");
  }
  return text;
}

class DocumentRunsTest : public testing::TestWithParam<std::string> {};

TEST_P(DocumentRunsTest, CommandsRunAndPrintWhatIsShown) {
  const std::string path = absl::StrCat(WEIR_SOURCE_DIR, "/", GetParam());
  const auto document = ReadFile(path);
  ASSERT_TRUE(document.ok()) << document.status();
  const std::vector<Command> commands = CommandsOf(*document);
  if (commands.empty()) return;
  const std::string name =
      absl::StrReplaceAll(GetParam(), {{"/", "-"}, {".md", ""}});
  const std::string folder = PrepareFiles(name);
  int num_skipped = 0;
  Lines updated = absl::StrSplit(*document, '\n');
  size_t added = 0;  // lines of `updated` before the command
  bool is_updated = false;
  for (const Command& command : commands) {
    if (WhySkipped(command.text) != nullptr) {
      ++num_skipped;
      continue;
    }
    ASSERT_TRUE(WriteFile(absl::StrCat(folder, "/.command"),
                          RunnableText(command) + "\n")
                    .ok());
    const int status =
        std::system(absl::StrCat("cd '", folder,
                                 "' && unset CI NO_COLOR CLICOLOR_FORCE && "
                                 "PATH='",
                                 folder,
                                 "/bin':\"$PATH\" timeout 120 bash "
                                 ".command > .out 2> .err < /dev/null")
                        .c_str());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::string printed = ReadFile(absl::StrCat(folder, "/.out")).value_or("");
    const std::string errors =
        ReadFile(absl::StrCat(folder, "/.err")).value_or("");
    if (printed.empty() || !command.output.has_value()) {
      absl::StrAppend(&printed, errors);
    }
    if (!command.output.has_value()) {
      EXPECT_TRUE(code == 0 || code == 1) << GetParam() << ": " << command.text
                                          << "\nexit code " << code << "\n"
                                          << printed;
      continue;
    }
    Lines found = absl::StrSplit(absl::StripSuffix(printed, "\n"), '\n');
    Lines expected = *command.output;
    while (!expected.empty() && expected.back().empty()) expected.pop_back();
    if (found == Lines{""}) found.clear();
    if (UpdatesGoldens() && !Matches(found, 0, expected, 0)) {
      const auto begin =
          updated.begin() + static_cast<ptrdiff_t>(command.begin + added);
      const auto end = begin + static_cast<ptrdiff_t>(command.output->size());
      updated.insert(updated.erase(begin, end), found.begin(), found.end());
      added += found.size() - command.output->size();
      is_updated = true;
      continue;
    }
    EXPECT_TRUE(Matches(found, 0, expected, 0))
        << GetParam() << ": " << command.text << "\nprinted\n"
        << printed << "\nexpected\n"
        << absl::StrJoin(expected, "\n");
  }
  if (is_updated) {
    EXPECT_TRUE(WriteFile(path, absl::StrJoin(updated, "\n")).ok());
  }
  RecordProperty("run", static_cast<int>(commands.size()) - num_skipped);
  RecordProperty("skipped", num_skipped);
}

Lines DocumentNames() {
  Lines names = {"README.md", "CONTRIBUTING.md"};
  for (const auto& entry :
       std::filesystem::directory_iterator(WEIR_SOURCE_DIR "/docs")) {
    if (entry.path().extension() == ".md") {
      names.push_back(absl::StrCat("docs/", entry.path().filename().string()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, DocumentRunsTest,
                         testing::ValuesIn(DocumentNames()),
                         [](const auto& info) {
                           return absl::StrReplaceAll(
                               info.param,
                               {{"/", "_"}, {"-", "_"}, {".md", ""}});
                         });

TEST(DocumentRunsMatchTest, DotsStandForText) {
  EXPECT_TRUE(LineMatches("took 3.5 s, 4 GiB", "took ... s, ... GiB"));
  EXPECT_FALSE(LineMatches("took 3.5 s", "took ... ms"));
  EXPECT_FALSE(LineMatches("ab", "ab...b"));
  EXPECT_TRUE(Matches({"a", "b", "c"}, 0, {"a", "...", "c"}, 0));
  EXPECT_TRUE(Matches({"a", "c"}, 0, {"a", "...", "c"}, 0));
  EXPECT_FALSE(Matches({"a", "b"}, 0, {"a"}, 0));
}

TEST(DocumentRunsMatchTest, BlocksHaveCommandsAndOutput) {
  const auto commands = CommandsOf(
      "weir no\n```\n$ weir a \\\n  b\nout\n$ weir c\n```\n```\nweir d\ntext\n"
      "```\n");
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_EQ(commands[0].text, "weir a    b");
  EXPECT_EQ(commands[0].begin, 4u);  // after the continued line
  EXPECT_THAT(*commands[0].output, testing::ElementsAre("out"));
  EXPECT_TRUE(commands[1].output->empty());
  EXPECT_FALSE(commands[2].output.has_value());
}

}  // namespace weir::cli::document_runs_test
