// SPDX-License-Identifier: Apache-2.0
// Runs the examples that the reference has for options besides those of the
// help (cli/reference/examples/commands.txt), each in a fresh folder with the
// files that it needs. Commands must exit with 0.
// weir-calibrate has the fake GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "cli/options/add_option.h"
#include "cli/options/command_tree.h"
#include "cli/options/program.h"
#include "cli/reference/example_lines.h"
#include "cli/reference/option_examples.h"
#include "cli/weir/weir_app.h"
#include "cli/weir_calibrate/calibrate_app.h"
#include "tests/cli/reference/command_run.h"
#include "tests/cli/reference/document_files.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::example_runs_test {

using Lines = std::vector<std::string>;
namespace fs = std::filesystem;

constexpr char kFile[] = WEIR_SOURCE_DIR "/cli/reference/examples/commands.txt";

// Parts of examples, and why they are not run.
struct NotRun {
  const char* part;
  const char* reason;
};
constexpr NotRun kNotRun[] = {
    {"weir live", "runs until it is interrupted"},
    {"--slurm", "needs a cluster"},
    {"weir-calibrate network", "needs a launcher"},
    {"weir-calibrate judge", "needs reports of a GPU"},
    {"weir-calibrate replay --device", "trains for minutes without a GPU"},
};

// Options that make commands shorter, unless the example has them.
struct Shorter {
  const char* command;
  const char* options;
};
constexpr Shorter kShorter[] = {
    {"weir plan ",
     "--time-limit 10 --patience 2 --plans 1 --jobs 1 --recompute none "},
    {"weir train-study ", "--updates 2 --seeds 1 "},
    {"weir goodput ", "--runs 10 "},
    {"weir jitter ", "--samples 10 "},
    {"weir-calibrate run ", "--microbatch-sizes 1 --only copy "},
};

// Examples of options of scenarios differ only in their command. weir simulate
// runs all, but other commands only one of this many, each command others,
// because running all takes minutes. With WEIR_ALL_EXAMPLES=1 all are run.
constexpr size_t kShare = 12;

// Returns the full names of all commands, and of the programs.
Lines AllNames() {
  CommandLine line;
  CalibrateLine calibrate_line;
  const auto weir = MakeWeirApp(&line);
  const auto calibrate = MakeCalibrateApp(&calibrate_line);
  Lines names;
  for (const CLI::App* program : {weir.get(), calibrate.get()}) {
    names.push_back(program->get_name());
    for (const CLI::App* command : AllCommands(*program)) {
      names.push_back(FullName(*command));
    }
  }
  return names;
}

bool IsRun(const std::string& line) {
  return std::none_of(
      std::begin(kNotRun), std::end(kNotRun),
      [&](const NotRun& no) { return absl::StrContains(line, no.part); });
}

// The programs and the examples of their options.
class Examples {
 public:
  Examples() {
    const auto lines = ExampleLines(text_, {weir_.get(), calibrate_.get()});
    EXPECT_TRUE(lines.ok()) << lines.status();
    if (!lines.ok()) return;
    OptionExamples all;
    for (CLI::App* program : {weir_.get(), calibrate_.get()}) {
      const auto examples = FindOptionExamples(*lines, all, program);
      EXPECT_TRUE(examples.ok()) << examples.status();
      if (!examples.ok()) continue;
      for (const auto& example : *examples) shown_.insert(example.second);
      all.insert(examples->begin(), examples->end());
    }
    for (const std::string& line : *lines) {
      if (shown_.count(line) > 0) lines_.push_back(line);
    }
  }

  // Returns the examples of a command, or of a program, that are run.
  Lines LinesToRun(const std::string& command) {
    const Lines all = AllNames();
    const size_t index = static_cast<size_t>(
        std::find(all.begin(), all.end(), command) - all.begin());
    Lines lines;
    for (const std::string& line : lines_) {
      if (!IsRun(line) || !IsInShare(line, index)) continue;
      for (CLI::App* program : {weir_.get(), calibrate_.get()}) {
        const auto found = ParseExampleLine(line, program);
        if (found.ok() && FullName(**found) == command) lines.push_back(line);
      }
    }
    return lines;
  }

  const std::string& text() const { return text_; }
  const Lines& lines() const { return lines_; }

 private:
  bool IsInShare(const std::string& line, size_t command) const {
    if (std::getenv("WEIR_ALL_EXAMPLES") != nullptr ||
        absl::StartsWith(line, "weir simulate ")) {
      return true;
    }
    size_t end = command;
    for (absl::string_view text : absl::StrSplit(text_, '\n')) {
      if (!absl::ConsumePrefix(&text, "...")) continue;
      if (absl::EndsWith(line, text)) return end % kShare == 0;
      ++end;
    }
    return true;  // is a line of its own
  }

  const std::string text_ = ReadFile(kFile).value_or("");
  CommandLine line_;
  CalibrateLine calibrate_line_;
  const std::unique_ptr<CLI::App> weir_ = MakeWeirApp(&line_);
  const std::unique_ptr<CLI::App> calibrate_ =
      MakeCalibrateApp(&calibrate_line_);
  std::set<std::string> shown_;
  Lines lines_;  // of the file that are shown
};

// Parsing all examples takes longer than most commands.
Examples& AllExamples() {
  static auto& examples = *new Examples;
  return examples;
}

// weir is forked, which is faster than starting it.
ProgramRun RunExample(const std::string& folder, std::string line) {
  for (const Shorter& shorter : kShorter) {
    // Planners of papers have no time limit.
    if (absl::StrContains(line, " --algorithm ")) continue;
    line = absl::StrReplaceAll(
        line,
        {{shorter.command, absl::StrCat(shorter.command, shorter.options)}});
  }
  absl::string_view arguments = line;
  return absl::ConsumePrefix(&arguments, "weir ")
             ? RunWeirIn(folder, arguments)
             : document_runs_test::RunIn(folder, line);
}

class ExampleRunsTest : public testing::TestWithParam<std::string> {};

TEST_P(ExampleRunsTest, ExamplesOfOptionsSucceed) {
  const Lines lines = AllExamples().LinesToRun(GetParam());
  if (lines.empty()) return;
  const std::string files = document_runs_test::PrepareFiles(
      "examples.md",
      absl::StrCat("```\n", absl::StrJoin(lines, "\n"), "\n```\n"));
  EXPECT_TRUE(WriteFile(files + "/bin/weir-calibrate",
                        "#!/bin/sh\nexec '" WEIR_CALIBRATE "' \"$@\"\n")
                  .ok());
  const std::string folder = TestFolder() + "/run";
  for (const std::string& line : lines) {
    fs::remove_all(folder);
    fs::copy(files, folder, fs::copy_options::recursive);
    const ProgramRun run = RunExample(folder, line);
    EXPECT_EQ(run.exit_code, 0) << line << "\n" << run.out << run.err;
  }
  RecordProperty("run", static_cast<int>(lines.size()));
}

INSTANTIATE_TEST_SUITE_P(
    All, ExampleRunsTest, testing::ValuesIn(AllNames()), [](const auto& info) {
      return absl::StrReplaceAll(info.param, {{" ", "_"}, {"-", "_"}});
    });

// Others would take time for nothing.
TEST(ExampleLinesTest, EveryLineIsAnExample) {
  const Examples& examples = AllExamples();
  const std::string all = absl::StrJoin(examples.lines(), "\n") + "\n";
  for (absl::string_view line : absl::StrSplit(examples.text(), '\n')) {
    if (line.empty() || absl::StartsWith(line, "#")) continue;
    absl::string_view text = line;
    const bool is_found =
        absl::ConsumeSuffix(&text, "...")
            ? absl::StrContains(absl::StrCat("\n", all),
                                absl::StrCat("\n", text))
            : absl::StrContains(
                  all, absl::StrCat(absl::StripPrefix(text, "..."), "\n"));
    EXPECT_TRUE(is_found) << line;
  }
}

// Entries without an example would hide one that is written later.
TEST(ExampleLinesTest, EveryExceptionIsUsed) {
  const std::string all = absl::StrJoin(AllExamples().lines(), "\n");
  for (const NotRun& no : kNotRun) {
    EXPECT_TRUE(absl::StrContains(all, no.part)) << no.part;
  }
}

}  // namespace weir::cli::example_runs_test
