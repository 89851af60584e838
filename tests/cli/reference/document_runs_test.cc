// SPDX-License-Identifier: Apache-2.0
// Runs the commands in the blocks of documents, document by document and in
// their order in one folder, and compares the output where a block shows it.
//
// A block shows output if its commands begin with "$ ": what they print on
// standard output or, if that is nothing, on standard error. There, "..."
// stands for any text within a line, and a line "..." for any number of lines.
// With WEIR_UPDATE_GOLDENS=1, outputs that differ are replaced in the document.
// Commands must exit with 0, unless they show an error or kNegative has them.
// document_files.cc makes the files that a reader has. Commands that need a
// GPU, a cluster, a terminal or minutes are in kSkipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "tests/cli/reference/command_run.h"
#include "tests/cli/reference/document_commands.h"
#include "tests/cli/reference/document_files.h"
#include "tests/golden.h"

namespace weir::cli::document_runs_test {

// Parts of commands, and why they are not run.
struct Skipped {
  const char* part;
  const char* reason;
};
constexpr Skipped kSkipped[] = {
    {"weir-calibrate doctor", "needs a GPU"},
    {"weir-calibrate run", "needs a GPU"},
    {"weir-calibrate replay my.textproto", "needs a GPU"},
    {"cmake ", "builds"},
    {"./check", "builds"},
    {"python3 -m venv", "installs packages"},
    {"./run init", "asks on a terminal"},
    {"weir live", "runs until it is interrupted"},
    {"--slurm", "needs a cluster"},
};

// Commands that do not exit with 0 without showing an error.
struct Negative {
  const char* document;
  const char* part;  // of the command
  int code;
  const char* reason;
};
constexpr Negative kNegative[] = {
    {"docs/energy.md", "--model gpt3-175b", 1, "the peak is overestimated"},
    {"docs/how-to.md", "--schedule gpipe", 1, "asks whether a run fits"},
    {"docs/machine-interface.md", "--pp 0", 2, "shows an error as JSON"},
};

// Programs that not every machine has, and parts of commands that need them.
struct Needed {
  const char* part;
  const char* program;
};
constexpr Needed kNeeded[] = {
    {".pdf", "rsvg-convert"},
    {"sqlite3 ", "sqlite3"},
};

bool MustSkip(const std::string& command) {
  for (const Skipped& skipped : kSkipped) {
    if (absl::StrContains(command, skipped.part)) return true;
  }
  for (const Needed& needed : kNeeded) {
    const std::string found =
        absl::StrCat("command -v ", needed.program, " > /dev/null");
    if (absl::StrContains(command, needed.part) &&
        std::system(found.c_str()) != 0) {
      return true;
    }
  }
  return false;
}

// Options that make commands shorter whose output is not shown.
struct Shorter {
  const char* command;
  const char* options;
};
constexpr Shorter kShorter[] = {
    {"weir plan ", "--time-limit 1 --jobs 1 "},
    {"weir train-study ", "--updates 10 --seeds 1 "},
    {"weir simulate --model deepseek-v3 ", "--method fast "},
};

// Returns the command as it is run: a scenario for the placeholder, shorter if
// its output is not shown.
std::string RunnableText(const Command& command) {
  std::string text =
      absl::StrReplaceAll(command.text, {{"SCENARIO", "llama-3-70b-64-h100"}});
  for (const Shorter& shorter : kShorter) {
    if (command.output.has_value()) break;
    text = absl::StrReplaceAll(
        text,
        {{shorter.command, absl::StrCat(shorter.command, shorter.options)}});
  }
  return text;
}

// Returns true if a search of kShorter had too little time: its exit code is 1.
bool WasCutShort(const Command& command, const ProgramRun& run) {
  return !command.output.has_value() && run.exit_code == 1 &&
         absl::StrContains(command.text, "weir plan ") &&
         absl::StrContains(run.err, "the search ended before a plan");
}

// Returns what is wrong with an exit code, or "".
std::string CodeProblem(const std::string& document, const Command& command,
                        int code) {
  for (const Negative& negative : kNegative) {
    if (document == negative.document &&
        absl::StrContains(command.text, negative.part)) {
      return code == negative.code
                 ? ""
                 : absl::StrCat("exit code ", code, ", expected ",
                                negative.code, ": ", negative.reason);
    }
  }
  const bool fails = ShowsError(command);
  if (fails == (code != 0) && code < 3) return "";
  return absl::StrCat("exit code ", code, ", expected ",
                      fails ? "1 or 2, as an error is shown" : "0");
}

class DocumentRunsTest : public testing::TestWithParam<std::string> {};

// The commands of a document, and its lines with outputs of this run.
class DocumentRun {
 public:
  DocumentRun(const std::string& name, const std::string& text)
      : name_(name),
        folder_(PrepareFiles(name, text)),
        updated_(absl::StrSplit(text, '\n')) {}

  void Check(const Command& command) {
    const ProgramRun run = RunIn(folder_, RunnableText(command));
    if (WasCutShort(command, run)) return;
    EXPECT_EQ(CodeProblem(name_, command, run.exit_code), "")
        << name_ << ": " << command.text << "\n"
        << run.out << run.err;
    if (!command.output.has_value()) return;
    const std::string& printed = run.out.empty() ? run.err : run.out;
    Lines found = absl::StrSplit(absl::StripSuffix(printed, "\n"), '\n');
    Lines expected = *command.output;
    while (!expected.empty() && expected.back().empty()) expected.pop_back();
    if (found == Lines{""}) found.clear();
    if (Matches(found, 0, expected, 0)) return;
    if (UpdatesGoldens()) {
      Update(command, found);
      return;
    }
    ADD_FAILURE() << name_ << ": " << command.text << "\nprinted\n"
                  << printed << "\nexpected\n"
                  << absl::StrJoin(expected, "\n");
  }

  bool is_updated() const { return is_updated_; }
  const Lines& updated() const { return updated_; }

 private:
  void Update(const Command& command, const Lines& found) {
    const auto begin =
        updated_.begin() + static_cast<ptrdiff_t>(command.begin + added_);
    const auto end = begin + static_cast<ptrdiff_t>(command.output->size());
    updated_.insert(updated_.erase(begin, end), found.begin(), found.end());
    added_ += found.size() - command.output->size();
    is_updated_ = true;
  }

  const std::string name_, folder_;
  Lines updated_;
  size_t added_ = 0;  // lines of `updated_` before the command
  bool is_updated_ = false;
};

TEST_P(DocumentRunsTest, CommandsRunAndPrintWhatIsShown) {
  const std::string path = absl::StrCat(WEIR_SOURCE_DIR, "/", GetParam());
  const auto document = ReadFile(path);
  ASSERT_TRUE(document.ok()) << document.status();
  const std::vector<Command> commands = CommandsOf(*document);
  if (commands.empty()) return;
  DocumentRun run(GetParam(), *document);
  int num_run = 0, num_compared = 0, num_skipped = 0;
  for (const Command& command : commands) {
    if (MustSkip(command.text)) {
      ++num_skipped;
      continue;
    }
    run.Check(command);
    ++num_run;
    if (command.output.has_value()) ++num_compared;
  }
  if (run.is_updated()) {
    EXPECT_TRUE(WriteFile(path, absl::StrJoin(run.updated(), "\n")).ok());
  }
  RecordProperty("run", num_run);
  RecordProperty("compared", num_compared);
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

TEST(DocumentRunsMatchTest, IndentedBlocksHaveCommands) {
  const auto commands = CommandsOf(
      "- a\n    b\n\n    weir a \\\n      b\n    weir c\n\n    text\n");
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(commands[0].text, "weir a    b");
  EXPECT_EQ(commands[1].text, "weir c");
}

TEST(DocumentRunsMatchTest, OnlyShownErrorsMayFail) {
  const Command plain{"weir a", std::nullopt}, shown{"weir a", Lines{"b"}};
  const Command error{"weir a", Lines{"b", "error: c"}};
  for (const Command& command : {plain, shown}) {
    EXPECT_EQ(CodeProblem("docs/x.md", command, 0), "");
    EXPECT_NE(CodeProblem("docs/x.md", command, 1), "");
  }
  EXPECT_NE(CodeProblem("docs/x.md", error, 0), "");
  EXPECT_EQ(CodeProblem("docs/x.md", error, 1), "");
  EXPECT_NE(CodeProblem("docs/x.md", error, 124), "");  // hung
}

// Entries without a command would hide one that is written later.
TEST(DocumentRunsMatchTest, EveryExceptionIsUsed) {
  std::string all;
  for (const std::string& name : DocumentNames()) {
    const std::string path = absl::StrCat(WEIR_SOURCE_DIR, "/", name);
    for (const Command& c : CommandsOf(ReadFile(path).value_or(""))) {
      absl::StrAppend(&all, name, ": ", c.text, "\n");
    }
  }
  for (const Skipped& skipped : kSkipped) {
    EXPECT_TRUE(absl::StrContains(all, skipped.part)) << skipped.part;
  }
  for (const Needed& needed : kNeeded) {
    EXPECT_TRUE(absl::StrContains(all, needed.part)) << needed.part;
  }
  for (const Negative& negative : kNegative) {
    const Lines lines = absl::StrSplit(all, '\n');
    EXPECT_TRUE(
        std::any_of(lines.begin(), lines.end(),
                    [&](const auto& line) {
                      return absl::StartsWith(
                                 line, absl::StrCat(negative.document, ": ")) &&
                             absl::StrContains(line, negative.part);
                    }))
        << negative.document << ": " << negative.part;
  }
}

}  // namespace weir::cli::document_runs_test
