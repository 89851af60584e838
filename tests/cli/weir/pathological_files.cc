// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/weir/pathological_files.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/cli/weir/limited_run.h"
#include "tests/cli/weir/program.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxErrorLines = 60;
constexpr size_t kMaxErrorBytes = 64 << 10;

// Creates a socket, unless the path is too long for one.
void MakeSocket(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return;
  path.copy(address.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
            0);
  close(fd);
}

// Returns a description of how a run failed, or an empty string.
std::string Judge(const LimitedRun& run) {
  const auto lines = std::count(run.err.begin(), run.err.end(), '\n');
  std::string wrong;
  if (run.hung) wrong = "it hung";
  if (run.signal != 0 && !run.hung) {
    wrong = absl::StrCat("signal ", run.signal);
  }
  if (run.exit_code > 3) wrong = absl::StrCat("exit code ", run.exit_code);
  if (lines > kMaxErrorLines || run.err.size() > kMaxErrorBytes) {
    wrong = absl::StrCat(lines, " lines, ", run.err.size(), " bytes");
  }
  if (wrong.empty()) return "";
  return absl::StrCat(wrong, ": ", run.err.substr(0, 300));
}

}  // namespace

PathologicalFiles::PathologicalFiles(std::string folder)
    : folder_(std::move(folder)) {
  fs::create_directories(folder_);
  MakeQuick();
  MakeSlow();
  MakeOutputs();
  EXPECT_EQ(mkfifo(unwritten().c_str(), 0600), 0);
  for (const auto* paths : {&quick_, &slow_, &outputs_}) {
    for (const std::string& path : *paths) {
      std::error_code error;
      const fs::file_type type = fs::symlink_status(path, error).type();
      if (type == fs::file_type::none || type == fs::file_type::not_found) {
        continue;
      }
      types_[path] = type;
    }
  }
}

std::string PathologicalFiles::Path(absl::string_view name) const {
  return absl::StrCat(folder_, "/", name);
}

void PathologicalFiles::Fill(absl::string_view name, size_t bytes,
                             absl::string_view piece) {
  const std::string path = Path(name);
  std::ofstream file(path, std::ios::binary);
  std::string block;
  while (block.size() < (1 << 20)) block += std::string(piece);
  for (size_t size = 0; size < bytes; size += block.size()) file << block;
  file.close();
  EXPECT_TRUE(file.good());
  written_[path] = fs::last_write_time(path);
  slow_.push_back(path);
}

void PathologicalFiles::MakeQuick() {
  fs::create_directories(Path("folder"));
  fs::create_symlink("loop", Path("loop"));
  fs::create_symlink("b", Path("a"));
  fs::create_symlink("a", Path("b"));
  std::ofstream(Path("empty")).close();
  std::ofstream(Path("nul")) << std::string(1000, '\0');
  std::ofstream(Path("sparse")).close();
  fs::resize_file(Path("sparse"), uintmax_t{10} << 30);
  MakeSocket(Path("socket"));
  quick_ = {Path("folder"), Path("loop"), Path("a"),
            Path("empty"),  Path("nul"),  Path("sparse"),
            Path("socket"), "/dev/tty",   std::string(5000, 'x')};
}

void PathologicalFiles::MakeSlow() {
  slow_ = {"/dev/zero", "/dev/random"};
  // Larger than the limit for text files, but not for schedules and results.
  Fill("line", 100 << 20, "a");
  Fill("brackets.json", 100 << 20, "[");
  // Smaller than it.
  Fill("lines.csv", 4 << 20, "1\n");
  Fill("commas", 4 << 20, "a,");
  Fill("brackets", 4 << 20, "[");
  Fill("nested", 4 << 20, "a{");
  Fill("objects.json", 4 << 20, "{\"a\":");
  Fill("fields", 4 << 20, "no_such_field: 1\n");
}

void PathologicalFiles::MakeOutputs() {
  EXPECT_EQ(mkfifo(Path("unread.csv").c_str(), 0600), 0);
  for (const char* end : {".csv", ".json", ".svg"}) {
    fs::create_symlink(absl::StrCat("out", end),
                       Path(absl::StrCat("out", end)));
    fs::create_symlink("/dev/full", Path(absl::StrCat("full", end)));
  }
  outputs_ = {Path("folder"),   Path("out.csv"),    Path("out.json"),
              Path("out.svg"),  Path("full.csv"),   Path("full.json"),
              Path("full.svg"), Path("unread.csv"), Path("empty/below.json"),
              "/dev/full"};
}

void PathologicalFiles::ExpectUnchanged() const {
  for (const auto& [path, time] : written_) {
    EXPECT_TRUE(fs::is_regular_file(path) && fs::last_write_time(path) == time)
        << path << " was written: which option is missing among the outputs?";
  }
  for (const auto& [path, type] : types_) {
    EXPECT_EQ(fs::symlink_status(path).type(), type)
        << path << " was replaced or removed";
  }
}

std::vector<std::string> RunTrials(const std::string& name,
                                   const std::vector<Trial>& trials,
                                   size_t num_threads) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::vector<std::string> failures, errors(trials.size());
  const auto work = [&](size_t thread) {
    const std::string folder = absl::StrCat(TestFolder(), "/", name, thread);
    for (size_t i = next++; i < trials.size(); i = next++) {
      fs::remove_all(folder);
      fs::create_directories(folder);
      const LimitedRun run = RunLimited(trials[i].words, folder);
      errors[i] = run.err;
      const std::string wrong = Judge(run);
      if (wrong.empty()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      failures.push_back(absl::StrCat(trials[i].label, ": ", wrong));
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < num_threads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(failures.empty())
      << failures.size() << " of " << trials.size() << " runs:\n"
      << absl::StrJoin(failures, "\n");
  return errors;
}

}  // namespace weir::cli
