// SPDX-License-Identifier: Apache-2.0
// Gives pathological files to every option of every command that takes a name.
// Checks that each command ends soon, with a documented exit code and a short
// message.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/options/add_option.h"
#include "cli/weir/weir_app.h"
#include "tests/cli/weir/all_commands.h"
#include "tests/cli/weir/pathological_files.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::pathological_test {

using Words = std::vector<std::string>;

// Returns the arguments besides the one under test: enough to make a command
// read the file, with little work. Words without dashes are positional
// arguments. Commands that are not listed here run with their first example.
const std::map<std::string, std::string>& BaseArguments() {
  constexpr char kTiny[] =
      "--model tiny-gpt --cluster p3-16xlarge --schedule gpipe --gbs 4 --mbs 1 "
      "--pp 2";
  static const auto& base = *new std::map<std::string, std::string>{
      {"simulate", kTiny},
      {"compare", kTiny},
      {"explain", "given-costs-1f1b"},
      {"validate", ""},
      {"sweep", "--costs f=1,b=2 --microbatches 2 --schedule gpipe --out s"},
      {"collect", "nowhere"},
      {"train-study", "--schedule gpipe --updates 2 --seeds 1"},
      {"plan",
       "--model tiny-gpt --cluster p3-16xlarge --gbs 4 --gpus 2 --tp 1 --mbs 1 "
       "--schedule gpipe --algorithm pipedream --machines 2 --bandwidth 1e9"},
      {"show", "nowhere"},
      {"report", "nowhere -o t.html"},
      {"draw", "nowhere -o t.svg"},
      // Does not begin to serve: 7 does not divide the heads.
      {"live", absl::StrCat(kTiny, " --tp 7")},
      {"trace", "nowhere -o t.json"},
      {"import", "nowhere"},
      {"stragglers", "nowhere"},
      {"slack", "--costs f=1,b=2 --pp 2 --microbatches 2 --schedule gpipe"},
      {"jitter",
       "--costs f=1,b=2 --pp 2 --microbatches 2 --schedule gpipe --samples 2 "
       "--jitter pass=constant:1"},
      {"schedule show", "gpipe --pp 2 --microbatches 2"},
      {"schedule semantics", "gpipe --pp 2 --microbatches 2"},
      {"schedule lint", "gpipe --pp 2 --microbatches 2"},
      {"schedule convert", "gpipe --pp 2 --microbatches 2"},
      {"schedule synthesize",
       "--pp 2 --microbatches 2 --method local --moves 10"},
      {"model show", "tiny-gpt"},
      {"cluster show", "p3-16xlarge"},
      {"scenario show", "given-costs-1f1b"},
      {"profile show", "h100-sxm"},
      {"profile diff", "h100-sxm h200-sxm"},
      {"profile import", "nowhere --profile h100-sxm --out p.textproto"},
  };
  return base;
}

// Returns the options that name an output. These are not given files that other
// runs read.
const std::set<std::string>& OutputNames() {
  static const auto& names = *new std::set<std::string>{
      "--out",    "--output", "--trace",   "--csv",
      "--sqlite", "--plot",   "--emit-to", "--report"};
  return names;
}

struct Place {
  std::string command;
  std::string option;  // first name; positional if without dashes
  bool is_output = false;

  std::string Text() const {
    return absl::StrCat("weir ", command, " ", option);
  }
};

// Returns every option that takes text, as paths cannot be told from other
// names.
std::vector<Place> AllPlaces() {
  std::vector<Place> places;
  CommandLine line;
  const auto app = MakeWeirApp(&line);
  for (CLI::App* command : AllCommands(app.get())) {
    for (CLI::Option* option : command->get_options()) {
      const std::string name = option->get_name();
      if (!TakesValue(*option)) continue;
      // Numbers and choices are refused.
      if (!SetOption(option, "/no/such/file").ok()) continue;
      places.push_back({NameOf(*command), name, OutputNames().contains(name)});
    }
  }
  return places;
}

// Returns the arguments of the first example of a command.
Words FirstExample(const std::string& name) {
  static const auto& examples = *[] {
    auto* words = new std::map<std::string, Words>();
    CommandLine line;
    const auto app = MakeWeirApp(&line);
    for (const CLI::App* command : AllCommands(app.get())) {
      const std::string example = ExamplesOf(*command)[0];
      (*words)[NameOf(*command)] = absl::StrSplit(
          absl::StripPrefix(example, NameOf(*command)), ' ', absl::SkipEmpty());
    }
    return words;
  }();
  return examples.at(name);
}

// Returns the words of a run with `path` as the value of the option.
Words WordsOf(const Place& place, const std::string& path) {
  const auto at = BaseArguments().find(place.command);
  const Words base =
      at == BaseArguments().end()
          ? FirstExample(place.command)
          : Words(absl::StrSplit(at->second, ' ', absl::SkipEmpty()));
  Words words = {WEIR_PROGRAM};
  for (absl::string_view word : absl::StrSplit(place.command, ' ')) {
    words.emplace_back(word);
  }
  if (absl::StartsWith(place.option, "-")) {
    words.insert(words.end(), base.begin(), base.end());
    words.insert(words.end(), {place.option, path});
    return words;
  }
  // Positional arguments come first: this one and those before it.
  const auto end = std::find_if(base.begin(), base.end(), [](const auto& word) {
    return absl::StartsWith(word, "-");
  });
  Words positional(base.begin(), end);
  const size_t index = place.option == "B" ? 1 : 0;
  if (positional.size() <= index) positional.resize(index + 1);
  positional[index] = path;
  words.insert(words.end(), positional.begin(), positional.end());
  words.insert(words.end(), end, base.end());
  return words;
}

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

Trial TrialOf(const Place& place, const std::string& path) {
  return {absl::StrCat(place.Text(), " ", path.substr(0, 200)),
          WordsOf(place, path)};
}

TEST(PathologicalTest, EveryCommandEnds) {
  const PathologicalFiles files(TestFolder() + "/files");
  const std::string folder = files.Path("folder");
  std::vector<Place> places;
  std::vector<Trial> runs, waits, reads;
  // Options of the same name read their files in the same way in every command.
  std::set<std::string> tried;
  for (const Place& place : AllPlaces()) {
    const bool first = tried.insert(place.option).second;
    for (const std::string& path :
         place.is_output ? files.outputs() : files.quick()) {
      if (!first && path != folder && path != files.Path("loop")) continue;
      runs.push_back(TrialOf(place, path));
      places.push_back(path == folder ? place : Place());
    }
  }
  const size_t num_threads = std::max(2u, std::thread::hardware_concurrency());
  const Words errors = RunTrials("quick", runs, num_threads);
  // The options that read a file are those that refuse a folder.
  std::set<std::string> seen;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (places[i].command.empty() || places[i].is_output ||
        !absl::StrContains(errors[i], "is a folder")) {
      continue;
    }
    waits.push_back(TrialOf(places[i], files.unwritten()));
    if (!seen.insert(places[i].option).second) continue;
    for (const std::string& path : files.slow()) {
      reads.push_back(TrialOf(places[i], path));
    }
  }
  EXPECT_GT(seen.size(), 10) << absl::StrJoin(seen, " ");
  // Folders of sweeps with such a file as a shard.
  for (const std::string& path :
       {files.unwritten(), files.Path("sparse"), files.Path("line"),
        files.Path("lines.csv"), files.Path("loop"), folder,
        std::string("/dev/zero")}) {
    const std::string sweep = files.Path("sweep-" + FileName(path));
    std::filesystem::create_directories(sweep);
    std::filesystem::create_symlink(path, sweep + "/shard-0-of-1.jsonl");
    waits.push_back(TrialOf({"collect", "FOLDER"}, sweep));
    waits.push_back(TrialOf({"sweep", "--out"}, sweep));
  }
  // These wait a few seconds for a writer and use almost no CPU time.
  std::thread waiting([&] { RunTrials("wait", waits, 32); });
  RunTrials("read", reads, num_threads);
  waiting.join();
  files.ExpectUnchanged();
}

}  // namespace weir::cli::pathological_test
