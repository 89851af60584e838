// SPDX-License-Identifier: Apache-2.0
// Runs weir in a fork of the test, because loading the program takes longer
// than most commands.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/files.h"
#include "cli/weir/run_weir.h"
#include "cli/weir/weir_app.h"
#include "tests/cli/weir/program.h"

// Writes the counters of builds that measure coverage.
extern "C" void __gcov_dump() __attribute__((weak));

namespace weir::cli {
namespace {

constexpr int kTimeoutSeconds = 300;

// Runs the command line as `timeout` and a shell would in the folder.
[[noreturn]] void RunInChild(const wordexp_t& words, const std::string& out,
                             const std::string& err) {
  const auto redirect = [](const char* path, int flags, int descriptor) {
    const int file = open(path, flags, 0600);
    if (file < 0 || dup2(file, descriptor) < 0) _exit(127);
    close(file);
  };
  redirect("/dev/null", O_RDONLY, STDIN_FILENO);
  redirect(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  for (const char* name : {"CI", "NO_COLOR", "CLICOLOR_FORCE"}) unsetenv(name);
  alarm(kTimeoutSeconds);
  const int code =
      RunWeir(static_cast<int>(words.we_wordc), words.we_wordv, MakeWeirApp);
  std::cout.flush();
  fflush(nullptr);
  if (__gcov_dump != nullptr) __gcov_dump();
  // Destroying the copies of the test's objects would copy their pages.
  _exit(code);
}

int ShellCodeOf(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return WTERMSIG(status) == SIGALRM ? 124 : 128 + WTERMSIG(status);
}

}  // namespace

ProgramRun RunWeirIn(const std::string& folder, absl::string_view arguments) {
  // Patterns such as *.pb refer to the folder.
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(TestFolder()) / folder);
  wordexp_t words;
  const std::string line = absl::StrCat("weir ", arguments);
  const int parsed = wordexp(line.c_str(), &words, WRDE_NOCMD);
  ProgramRun run;
  if (parsed == 0) {
    const std::string out = absl::StrCat(TestFolder(), "/.out");
    const std::string err = absl::StrCat(TestFolder(), "/.err");
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) RunInChild(words, out, err);
    wordfree(&words);
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child) {
      run.exit_code = ShellCodeOf(status);
    }
    run.out = ReadFile(out).value_or("");
    run.err = ReadFile(err).value_or("");
  }
  std::filesystem::current_path(before);
  // Only a shell knows redirections, pipes and commands in backquotes.
  return parsed == 0
             ? run
             : RunWeirAfter(
                   absl::StrCat("cd '", folder.empty() ? "." : folder, "' &&"),
                   arguments);
}

ProgramRun RunWeir(absl::string_view arguments) {
  return RunWeirIn("", arguments);
}

}  // namespace weir::cli
