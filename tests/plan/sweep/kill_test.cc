// SPDX-License-Identifier: Apache-2.0
// Kills a sweep or its workers with kill -9 at random times. The results
// collected after resuming it must have the same bytes as those of an
// undisturbed sweep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "plan/sweep/collect.h"

namespace weir::plan::kill_test {

constexpr int kInternal = 70;

class KillTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(testing::TempDir(), "weir-kill-XXXXXX");
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    // Makes orphans children of this process, so that their end is observable.
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  pid_t Start(const std::string& folder) const {
    const std::string out = absl::StrCat(root_, "/", folder);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    if (std::freopen("/dev/null", "w", stdout) == nullptr ||
        std::freopen("/dev/null", "w", stderr) == nullptr) {
      _exit(1);
    }
    execl(WEIR_PROGRAM, "weir", "sweep", "--costs", "f=1,b=2", "--grid",
          "parallelism.pipeline=2..9", "--grid", "schedule=gpipe,1f1b",
          "--grid", "num_microbatches=2..16+2", "--out", out.c_str(), "-j", "2",
          "--resume", nullptr);
    _exit(1);
  }

  std::string Collected(const std::string& folder) const {
    const auto collected = CollectShards(absl::StrCat(root_, "/", folder));
    if (!collected.ok()) return std::string(collected.status().message());
    EXPECT_TRUE(IsComplete(*collected));
    EXPECT_TRUE(collected->damage.empty());
    const std::string path = absl::StrCat(root_, "/x.sqlite");
    EXPECT_TRUE(WriteSqlite(path, *collected).ok());
    return absl::StrCat(SweepCsv(*collected), *ReadFile(path));
  }

  std::string root_;
};

std::vector<pid_t> ChildrenOf(pid_t pid) {
  const auto text =
      ReadFile(absl::StrCat("/proc/", pid, "/task/", pid, "/children"));
  std::vector<pid_t> children;
  for (absl::string_view word :
       absl::StrSplit(text.value_or(""), ' ', absl::SkipWhitespace())) {
    pid_t child = 0;
    if (absl::SimpleAtoi(word, &child)) children.push_back(child);
  }
  return children;
}

// Returns the exit code, or minus the signal. Waits for orphans too.
int WaitForAll(pid_t pid) {
  int result = 0;
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) return result;
    if (ended != pid) continue;
    result = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
}

// Waits until the sweep has written `num_bytes` more or has ended, so that the
// test does not depend on the machine's load.
void WaitForBytes(const std::string& path, uintmax_t num_bytes, pid_t sweep) {
  std::error_code error;
  const auto size = [&] {
    const uintmax_t bytes = std::filesystem::file_size(path, error);
    return error ? 0 : bytes;
  };
  const uintmax_t end = size() + num_bytes;
  siginfo_t info = {};
  while (size() < end && info.si_pid == 0) {
    usleep(100);
    waitid(P_PID, sweep, &info, WEXITED | WNOHANG | WNOWAIT);
  }
}

void KillAWorker(pid_t sweep, int random) {
  const std::vector<pid_t> workers = ChildrenOf(sweep);
  if (!workers.empty()) kill(workers[random % workers.size()], SIGKILL);
}

TEST_F(KillTest, AnySweepThatIsKilledAndResumedEndsWithTheSameBytes) {
  constexpr int kNumKills = 8;
  ASSERT_EQ(WaitForAll(Start("calm")), 0);
  const std::string calm = Collected("calm");
  std::mt19937 random(7);
  // A point takes 260 bytes. A quarter of the draws is smaller than the head.
  std::uniform_int_distribution<int> num_bytes(0, 3000);
  int num_sweeps_killed = 0, num_with_failures = 0;
  for (int round = 0; round < 3; ++round) {
    const std::string folder = absl::StrCat("round", round);
    const std::string shard =
        absl::StrCat(root_, "/", folder, "/shard-0-of-1.jsonl");
    for (int step = 0;; ++step) {
      ASSERT_LT(step, kNumKills + 3);
      const pid_t sweep = Start(folder);
      if (step < kNumKills) {
        WaitForBytes(shard, num_bytes(random), sweep);
        if (step % 2 == 1) KillAWorker(sweep, static_cast<int>(random() >> 1));
        if (step < kNumKills - 1) {
          kill(sweep, SIGKILL);
        } else {  // at the end only workers: their points fail, others continue
          for (int i = 0; i < 5;
               ++i) {  // one of them may be between two points
            WaitForBytes(shard, 1, sweep);
            KillAWorker(sweep, static_cast<int>(random() >> 1));
          }
        }
      }
      const int code = WaitForAll(sweep);  // returns only if no orphan is left
      num_sweeps_killed += code == -SIGKILL ? 1 : 0;
      num_with_failures += code == kInternal ? 1 : 0;
      ASSERT_TRUE(code == 0 || code == kInternal || code == -SIGKILL) << code;
      if (code == 0 && step >= kNumKills) break;
    }
    EXPECT_EQ(Collected(folder), calm) << "round " << round;
  }
  EXPECT_GE(num_sweeps_killed, kNumKills);
  EXPECT_GE(num_with_failures, 1);
  std::printf("%d sweeps killed, %d ended with a failed point\n",
              num_sweeps_killed, num_with_failures);
}

}  // namespace weir::plan::kill_test
