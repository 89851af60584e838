// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/weir/program.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace weir::cli {

namespace {

// The folder of all tests of this process.
std::string RootFolder() {
  static const std::string* folder = [] {
    std::string pattern = absl::StrCat(testing::TempDir(), "weir-cli-XXXXXX");
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    // Removed when the test process ends, not when a fork of it does.
    static const pid_t owner = getpid();
    static const auto remove = [] {
      if (getpid() != owner) return;
      std::error_code error;
      std::filesystem::remove_all(RootFolder(), error);
    };
    std::atexit(+[] { remove(); });
    return new std::string(pattern);
  }();
  return *folder;
}

}  // namespace

std::string TestFolder() {
  static const testing::TestInfo* owner = nullptr;
  static int num_tests = 0;
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  if (num_tests == 0 || test != owner) {
    owner = test;
    ++num_tests;
  }
  std::string folder = absl::StrCat(RootFolder(), "/", num_tests);
  std::filesystem::create_directories(folder);
  return folder;
}

std::string WriteInput(const std::string& name, absl::string_view contents) {
  EXPECT_TRUE(WriteFile(absl::StrCat(TestFolder(), "/", name), contents).ok());
  return name;
}

ProgramRun RunWeirAfter(absl::string_view before, absl::string_view arguments) {
  const std::string out = absl::StrCat(TestFolder(), "/.out");
  const std::string err = absl::StrCat(TestFolder(), "/.err");
  // Removes environment variables that change colors or progress.
  const std::string line = absl::StrCat(
      "cd '", TestFolder(), "' && unset CI NO_COLOR CLICOLOR_FORCE && ", before,
      " timeout 300 '", WEIR_PROGRAM, "' ", arguments);
  const int status = std::system(
      absl::StrCat("( ", line, " ) >'", out, "' 2>'", err, "' </dev/null")
          .c_str());
  ProgramRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  run.out = ReadFile(out).value_or("");
  run.err = ReadFile(err).value_or("");
  return run;
}

}  // namespace weir::cli
