// SPDX-License-Identifier: Apache-2.0
// Gives pathological files to every option of weir-calibrate that takes a name.
// Checks that each command ends soon, with a documented exit code and a short
// message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/output_file.h"
#include "cli/options/add_option.h"
#include "cli/weir_calibrate/calibrate_app.h"
#include "tests/cli/weir/all_commands.h"
#include "tests/cli/weir/pathological_files.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::pathological_test {

using Words = std::vector<std::string>;

struct Command {
  std::string label;
  Words words;  // the program, its command and the arguments that never change
  // Options and their values. The option under test replaces its own.
  std::vector<std::pair<std::string, std::string>> options;
};

// Returns the words of one of two ranks that connect through a file, which rank
// 0 writes and rank 1 reads.
Words AsRank(const std::string& rank) {
  return {"/usr/bin/env",
          "RANK=" + rank,
          "WORLD_SIZE=2",
          "LOCAL_RANK=" + rank,
          "LOCAL_WORLD_SIZE=2",
          WEIR_PROGRAM,
          "network"};
}

std::vector<Command> Commands() {
  const std::vector<std::pair<std::string, std::string>> model = {
      {"--model", "gpt2"},
      {"--microbatch-sizes", "1"},
      {"--sequence-lengths", "128"},
      {"--only", "norm"}};
  Command run = {"run", {WEIR_PROGRAM, "run", "--quiet"}, model};
  run.options.push_back({"--out", "p.textproto"});
  Command list = {"run --list", {WEIR_PROGRAM, "run", "--list"}, model};
  Command check = {"check", {WEIR_PROGRAM, "check", "--quiet"}, model};
  Command network = {"network",
                     {WEIR_PROGRAM, "network"},
                     {{"--out", "p.textproto"}, {"--start", "h100-sxm"}}};
  Command first = network, second = network;
  first.label = "network as rank 0";
  first.words = AsRank("0");
  second.label = "network as rank 1";
  second.words = AsRank("1");
  for (Command* rank : {&first, &second}) {
    rank->options.push_back({"--timeout", "0.5"});
    rank->options.push_back({"--rendezvous", "nowhere"});
  }
  return {run, list, check, network, first, second};
}

// Returns true for options that name an output. These are not given files that
// other runs read.
bool IsOutput(const Command& command, const std::string& option) {
  static const auto& names =
      *new std::set<std::string>{"--out", "--report", "--trace"};
  return names.contains(option) ||
         (option == "--rendezvous" && command.label == "network as rank 0");
}

Trial TrialOf(const Command& command, const std::string& option,
              const std::string& path) {
  Trial trial = {absl::StrCat("weir-calibrate ", command.label, " ", option,
                              " ", path.substr(0, 200)),
                 command.words};
  for (const auto& [name, value] : command.options) {
    if (name != option) trial.words.insert(trial.words.end(), {name, value});
  }
  if (absl::StartsWith(option, "-")) trial.words.push_back(option);
  trial.words.push_back(path);
  return trial;
}

// Returns the options that take any text.
Words TextOptions(const std::string& command) {
  CalibrateLine line;
  const auto app = MakeCalibrateApp(&line);
  Words options;
  for (CLI::Option* option : app->get_subcommand(command)->get_options()) {
    if (!TakesValue(*option)) continue;
    // Numbers and choices are refused.
    if (!SetOption(option, "/no/such/file").ok()) continue;
    options.push_back(option->get_name());
  }
  return options;
}

struct Place {
  Command command;
  std::string option;
};

std::vector<Place> AllPlaces() {
  std::vector<Place> places;
  for (const Command& command : Commands()) {
    const std::string name = command.label.substr(0, command.label.find(' '));
    for (const std::string& option : TextOptions(name)) {
      // A run with several ranks differs from one with a single rank only in
      // this option.
      const bool is_rank = absl::StrContains(command.label, " as rank ");
      if (is_rank && option != "--rendezvous") continue;
      places.push_back({command, option});
    }
  }
  const Command replay = {"replay",
                          {WEIR_PROGRAM, "replay", "--cpu", "--schedule",
                           "gpipe", "--steps", "1", "--no-check"},
                          {}};
  for (const std::string& option : TextOptions("replay")) {
    places.push_back({replay, option});
  }
  return places;
}

TEST(CalibratePathologicalTest, EveryCommandEnds) {
  const PathologicalFiles files(TestFolder() + "/files");
  const std::string folder = files.Path("folder");
  const std::vector<Place> places = AllPlaces();
  std::vector<Trial> runs, waits, reads;
  std::vector<const Place*> readers;  // [run]; null: reads no folder
  for (const Place& place : places) {
    const bool is_output = IsOutput(place.command, place.option);
    for (const std::string& path :
         is_output ? files.outputs() : files.quick()) {
      // Only root could replace a device, and a bug must not do that.
      if (place.option == "--rendezvous" && path == "/dev/full") continue;
      runs.push_back(TrialOf(place.command, place.option, path));
      readers.push_back(path == folder && !is_output ? &place : nullptr);
    }
  }
  const size_t num_threads = std::max(2u, std::thread::hardware_concurrency());
  const Words errors = RunTrials("quick", runs, num_threads);
  // The options that read a file are those that refuse a folder.
  std::set<std::string> seen;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (readers[i] == nullptr || !absl::StrContains(errors[i], "is a folder")) {
      continue;
    }
    const auto& [command, option] = *readers[i];
    waits.push_back(TrialOf(command, option, files.unwritten()));
    if (!seen.insert(option).second) continue;
    for (const std::string& path : files.slow()) {
      reads.push_back(TrialOf(command, option, path));
    }
  }
  EXPECT_THAT(seen, testing::IsSupersetOf({"--model", "--start", "--topology",
                                           "--rendezvous", "--schedule"}));
  std::thread waiting([&] { RunTrials("wait", waits, 32); });
  RunTrials("read", reads, num_threads);
  waiting.join();
  files.ExpectUnchanged();
}

// Checks the files that belong to --out: the journal of an earlier run and the
// lock.
TEST(CalibratePathologicalTest, FilesBesideTheOutput) {
  const PathologicalFiles files(TestFolder() + "/outputs");
  std::vector<std::string> paths = files.quick();
  paths.insert(paths.end(), files.slow().begin(), files.slow().end());
  paths.push_back(files.unwritten());
  // A file with the journal's mark that is far too long.
  std::ofstream(files.Path("journal"))
      << MarkText("") << std::string(20 << 20, '[') << "\n# crc32: 0\n";
  paths.push_back(files.Path("journal"));
  const Command run = Commands().front();
  std::vector<Trial> trials;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].size() > 1000) continue;  // too long for the target of a link
    for (const char* suffix : {".partial", ".journal", ".lock"}) {
      const std::string out = files.Path(absl::StrCat("out", i, suffix));
      std::filesystem::create_symlink(paths[i], out + suffix);
      trials.push_back(TrialOf(run, "--out", out));
    }
  }
  RunTrials("outputs", trials,
            std::max(2u, std::thread::hardware_concurrency()));
  files.ExpectUnchanged();
}

}  // namespace weir::cli::pathological_test
