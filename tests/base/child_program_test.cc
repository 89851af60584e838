// SPDX-License-Identifier: Apache-2.0
#include "base/child_program.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/temporary_file.h"

namespace {

pid_t last_reaped = 0;
int num_kills_after_reaping = 0;

}  // namespace

// Override the C library's functions in this program to record the order in
// which they are called.
extern "C" pid_t waitpid(pid_t pid, int* status, int options) {
  const pid_t reaped = wait4(pid, status, options, nullptr);
  if (reaped > 0) last_reaped = reaped;
  return reaped;
}

extern "C" int kill(pid_t pid, int signal) noexcept {
  static const auto original =
      reinterpret_cast<int (*)(pid_t, int)>(dlsym(RTLD_NEXT, "kill"));
  if (pid == last_reaped || pid == -last_reaped) ++num_kills_after_reaping;
  return original(pid, signal);
}

namespace weir::child_program_test {

using testing::HasSubstr;

class ChildProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    auto output = ScratchFile::Make();
    ASSERT_TRUE(output.ok()) << output.status();
    output_ = std::make_unique<ScratchFile>(*std::move(output));
    last_reaped = 0;
    num_kills_after_reaping = 0;
  }

  absl::StatusOr<ChildEnd> Shell(const std::string& code,
                                 double limit_seconds = 60) {
    return RunChildProgram({"sh", "-c", code}, output_->path(), limit_seconds);
  }
  std::string Output() const { return ReadFile(output_->path()).value_or(""); }

  std::unique_ptr<ScratchFile> output_;
};

TEST_F(ChildProgramTest, ReturnsOutputAndExitCode) {
  const auto end = Shell("echo out; echo err >&2; exit 7");
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 7);
  EXPECT_FALSE(end->was_killed);
  EXPECT_EQ(Output(), "out\nerr\n");
  EXPECT_EQ(Shell("kill -TERM $$")->exit_code, 128 + SIGTERM);
}

TEST_F(ChildProgramTest, KillsWhatTheChildLeaves) {
  const auto end = Shell("sleep 1000 & echo $!");
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 0);
  int left = 0;
  ASSERT_TRUE(absl::SimpleAtoi(Output(), &left)) << Output();
  // Init reaps the killed process soon, or it stays a zombie.
  for (int i = 0; i < 1000; ++i) {
    const std::string stat =
        ReadFile(absl::StrCat("/proc/", left, "/stat")).value_or(") Z");
    if (stat.find(") Z") != std::string::npos) return;
    usleep(10'000);
  }
  ADD_FAILURE() << "process " << left << " is alive";
}

TEST_F(ChildProgramTest, ATimeLimitEndsTheWholeGroup) {
  const auto end = Shell("sleep 1000 & sleep 1000", 0.2);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->was_killed);
}

// Once a child is reaped, another process may have its group id.
TEST_F(ChildProgramTest, NoSignalIsSentAfterTheChildIsReaped) {
  ASSERT_TRUE(Shell("exit 0").ok());
  EXPECT_NE(last_reaped, 0);
  EXPECT_EQ(num_kills_after_reaping, 0);
  ASSERT_TRUE(Shell("sleep 1000", 0.2).ok());
  EXPECT_EQ(num_kills_after_reaping, 0);
}

TEST_F(ChildProgramTest, TheLimitOfFileSizesEndsTheChildOnly) {
  IgnoreFileSizeSignal();
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small = {1000, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto end = Shell("exec head -c 100000 /dev/zero");
  const auto file = ScratchFile::Make(std::string(2000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 128 + SIGXFSZ);
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("cannot be written: File too large"));
}

}  // namespace weir::child_program_test
