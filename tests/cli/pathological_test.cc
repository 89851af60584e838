// SPDX-License-Identifier: Apache-2.0
// Every command with files that have no end, no beginning or no sense, in every
// place that takes a name: it ends soon, with a documented exit code and a few
// lines.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/command_table.h"
#include "tests/cli/limited_run.h"
#include "tests/cli/program.h"

namespace weir {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr size_t kMaxErrorLines = 60;
constexpr size_t kMaxErrorBytes = 64 << 10;

// What a command is given besides the place that is tried: enough that it looks
// at the file, little enough to end at once. A word without dashes stands for a
// positional argument. Commands that are not here run with their first example.
const std::map<std::string, std::string>& BaseArguments() {
  constexpr char kTiny[] =
      "--model tiny-gpt --cluster p3-16xlarge --schedule gpipe --gbs 4 --mbs 1 "
      "--pp 2";
  static const auto& base = *new std::map<std::string, std::string>{
      {"simulate", kTiny},
      {"compare", kTiny},
      {"explain", "--costs f=1,b=2 --pp 2 --microbatches 2 --schedule gpipe"},
      {"validate", ""},
      {"sweep", "--costs f=1,b=2 --microbatches 2 --schedule gpipe --out s"},
      {"collect", "nowhere"},
      {"train-study", "--schedule gpipe --updates 2 --seeds 1"},
      {"plan",
       "--model tiny-gpt --cluster p3-16xlarge --gbs 4 --gpus 2 --tp 1 --mbs 1 "
       "--schedule gpipe --algorithm pipedream --machines 2 --bandwidth 1e9"},
      {"show", "nowhere"},
      {"trace", "nowhere -o t.json"},
      {"schedule show", "gpipe --pp 2 --microbatches 2"},
      {"schedule semantics", "gpipe --pp 2 --microbatches 2"},
      {"schedule lint", "gpipe --pp 2 --microbatches 2"},
      {"schedule convert", "gpipe --pp 2 --microbatches 2"},
      {"schedule synthesize",
       "--pp 2 --microbatches 2 --method local --moves 10"},
      {"model show", "tiny-gpt"},
      {"cluster show", "p3-16xlarge"},
      {"scenario show", "textbook-1f1b"},
      {"profile show", "h100-sxm"},
      {"profile diff", "h100-sxm h200-sxm"},
      {"profile import", "nowhere --profile h100-sxm --out p.textproto"},
  };
  return base;
}

// Options that name what is written: they are given no file that others read.
const std::set<std::string>& OutputNames() {
  static const auto& names = *new std::set<std::string>{
      "--out", "--output", "--trace", "--csv", "--sqlite", "--plot"};
  return names;
}

struct Place {
  std::string command;
  std::string option;  // first name; without dashes: positional
  bool is_output = false;

  std::string Text() const {
    return absl::StrCat("weir ", command, " ", option);
  }
};

// Every option that takes a text: names and paths look alike.
std::vector<Place> AllPlaces() {
  std::vector<Place> places;
  for (const CommandInfo& command : AllCommands()) {
    Flags flags;
    for (const Option& option : command.options(&flags)) {
      const std::string name = FirstName(option);
      const bool positional = !absl::StartsWith(name, "-");
      if (option.value.empty() && !positional) continue;  // a switch
      if (!option.set("/no/such/file").ok()) continue;    // a number, a choice
      places.push_back(
          {std::string(command.name), name, OutputNames().contains(name)});
    }
  }
  return places;
}

// The words of a run with `path` in a place.
Words WordsOf(const Place& place, const std::string& path) {
  const auto at = BaseArguments().find(place.command);
  Words base;
  if (at != BaseArguments().end()) {
    base = absl::StrSplit(at->second, ' ', absl::SkipEmpty());
  } else {
    for (const CommandInfo& command : AllCommands()) {
      if (command.name != place.command) continue;
      base =
          absl::StrSplit(absl::StripPrefix(command.examples[0], command.name),
                         ' ', absl::SkipEmpty());
    }
  }
  Words words = {WEIR_PROGRAM};
  for (absl::string_view word : absl::StrSplit(place.command, ' ')) {
    words.emplace_back(word);
  }
  if (absl::StartsWith(place.option, "-")) {
    words.insert(words.end(), base.begin(), base.end());
    words.insert(words.end(), {place.option, path});
    return words;
  }
  // The positional ones come first: this one, and those before it.
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

struct Trial {
  Place place;
  std::string path;
};

class PathologicalTest : public testing::Test {
 protected:
  std::string Path(absl::string_view name) const {
    return absl::StrCat(TestFolder(), "/files/", name);
  }

  void Fill(absl::string_view name, size_t bytes, absl::string_view piece) {
    std::ofstream file(Path(name), std::ios::binary);
    std::string block;
    while (block.size() < (1 << 20)) block += std::string(piece);
    for (size_t size = 0; size < bytes; size += block.size()) file << block;
    ASSERT_TRUE(file.good());
  }

  // None where the path is too long for one.
  static void MakeSocket(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return;
    path.copy(address.sun_path, path.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
              0);
    close(fd);
  }

  // Files that are refused before they are read, or as they are opened.
  Words QuickInputs() {
    fs::create_directories(Path("folder"));
    fs::create_symlink("loop", Path("loop"));
    fs::create_symlink("b", Path("a"));
    fs::create_symlink("a", Path("b"));
    std::ofstream(Path("empty")).close();
    std::ofstream(Path("nul")) << std::string(1000, '\0');
    std::ofstream(Path("sparse")).close();
    fs::resize_file(Path("sparse"), uintmax_t{10} << 30);
    MakeSocket(Path("socket"));
    return {Path("folder"), Path("loop"), Path("a"),
            Path("empty"),  Path("nul"),  Path("sparse"),
            Path("socket"), "/dev/tty",   std::string(5000, 'x')};
  }

  // Files that must be read, at least in part.
  Words SlowInputs() {
    // Above the limit of texts, not of schedules and results.
    Fill("line", 100 << 20, "a");
    Fill("brackets.json", 100 << 20, "[");
    // Below it.
    Fill("lines.csv", 20 << 20, "1\n");
    Fill("commas", 20 << 20, "a,");
    Fill("brackets", 20 << 20, "[");
    Fill("nested", 20 << 20, "a{");
    Fill("objects.json", 20 << 20, "{\"a\":");
    Fill("fields", 20 << 20, "no_such_field: 1\n");
    Words paths = {"/dev/zero", "/dev/random"};
    for (const char* name : {"line", "brackets.json", "lines.csv", "commas",
                             "brackets", "nested", "objects.json", "fields"}) {
      paths.push_back(Path(name));
    }
    return paths;
  }

  Words Outputs() {
    EXPECT_EQ(mkfifo(Path("unread.csv").c_str(), 0600), 0);
    for (const char* end : {".csv", ".json", ".svg"}) {
      fs::create_symlink(absl::StrCat("out", end),
                         Path(absl::StrCat("out", end)));
      fs::create_symlink("/dev/full", Path(absl::StrCat("full", end)));
    }
    return {Path("folder"),   Path("out.csv"),    Path("out.json"),
            Path("out.svg"),  Path("full.csv"),   Path("full.json"),
            Path("full.svg"), Path("unread.csv"), Path("empty/below.json"),
            "/dev/full"};
  }

  // What each said.
  Words RunAll(const std::string& name, const std::vector<Trial>& runs,
               size_t num_threads) {
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    Words failures, said(runs.size());
    const auto work = [&](size_t thread) {
      const std::string folder = absl::StrCat(TestFolder(), "/", name, thread);
      for (size_t i = next++; i < runs.size(); i = next++) {
        fs::remove_all(folder);
        fs::create_directories(folder);
        const LimitedRun run =
            RunLimited(WordsOf(runs[i].place, runs[i].path), folder);
        said[i] = run.err;
        const std::string wrong = Judge(run);
        if (wrong.empty()) continue;
        const std::lock_guard<std::mutex> lock(mutex);
        failures.push_back(absl::StrCat(runs[i].place.Text(), " ",
                                        runs[i].path.substr(0, 200), ": ",
                                        wrong));
      }
    };
    std::vector<std::thread> threads;
    for (size_t i = 0; i < num_threads; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(failures.empty())
        << failures.size() << " of " << runs.size() << " runs:\n"
        << absl::StrJoin(failures, "\n");
    return said;
  }

  // What is wrong with how it ended; empty: nothing.
  static std::string Judge(const LimitedRun& run) {
    const auto lines = std::count(run.err.begin(), run.err.end(), '\n');
    std::string wrong;
    if (run.hung) wrong = "it hung";
    if (run.signal != 0 && !run.hung) {
      wrong = absl::StrCat("signal ", run.signal);
    }
    if (run.exit_code > 3) wrong = absl::StrCat("exit code ", run.exit_code);
    if (lines > static_cast<long>(kMaxErrorLines) ||
        run.err.size() > kMaxErrorBytes) {
      wrong = absl::StrCat(lines, " lines, ", run.err.size(), " bytes");
    }
    if (wrong.empty()) return "";
    return absl::StrCat(wrong, ": ", run.err.substr(0, 300));
  }
};

TEST_F(PathologicalTest, EveryCommandEnds) {
  fs::create_directories(Path(""));
  const Words quick = QuickInputs(), slow = SlowInputs(), outputs = Outputs();
  ASSERT_EQ(mkfifo(Path("unwritten").c_str(), 0600), 0);
  std::map<std::string, fs::file_time_type> before;
  for (const std::string& path : slow) {
    if (fs::is_regular_file(path)) before[path] = fs::last_write_time(path);
  }
  std::vector<Trial> runs, waits, reads;
  // Places of one name read their files in one way, whatever the command.
  std::set<std::string> tried;
  for (const Place& place : AllPlaces()) {
    const bool first = tried.insert(place.option).second;
    for (const std::string& path : place.is_output ? outputs : quick) {
      if (!first && path != Path("folder") && path != Path("loop")) continue;
      runs.push_back({place, path});
    }
  }
  const size_t num_threads = std::max(2u, std::thread::hardware_concurrency());
  const Words said = RunAll("quick", runs, num_threads);
  // Where a file is read, a folder is refused.
  std::set<std::string> seen;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].path != Path("folder") || runs[i].place.is_output ||
        !absl::StrContains(said[i], "is a folder")) {
      continue;
    }
    waits.push_back({runs[i].place, Path("unwritten")});
    if (!seen.insert(runs[i].place.option).second) continue;
    for (const std::string& path : slow) {
      reads.push_back({runs[i].place, path});
    }
  }
  EXPECT_GT(seen.size(), 10) << absl::StrJoin(seen, " ");
  // A sweep's folder with such a file in it.
  for (const std::string& path :
       {Path("unwritten"), Path("sparse"), Path("line"), Path("lines.csv"),
        Path("loop"), Path("folder"), std::string("/dev/zero")}) {
    const std::string folder =
        Path(absl::StrCat("sweep-", fs::path(path).filename().string()));
    fs::create_directories(folder);
    fs::create_symlink(path, folder + "/shard-0-of-1.jsonl");
    waits.push_back({{"collect", "FOLDER"}, folder});
    waits.push_back({{"sweep", "--out"}, folder});
  }
  // The first ones wait a few seconds for a writer, and take no time of a core.
  std::thread waiting([&] { RunAll("wait", waits, 32); });
  RunAll("read", reads, num_threads);
  waiting.join();
  for (const auto& [path, time] : before) {
    EXPECT_TRUE(fs::is_regular_file(path) && fs::last_write_time(path) == time)
        << path << " was written: which option of OutputNames() is missing?";
  }
}

}  // namespace
}  // namespace weir
