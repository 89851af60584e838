// SPDX-License-Identifier: Apache-2.0
#include "base/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weir::worker_pool_test {

using testing::HasSubstr;
using Outputs = std::map<int, absl::StatusOr<std::string>>;

Outputs WaitForAll(Workers* workers) {
  Outputs outputs;
  while (workers->num_unfinished() > 0) {
    const absl::Status waited =
        workers->Wait([&](int job, absl::StatusOr<std::string> output) {
          EXPECT_TRUE(outputs.emplace(job, std::move(output)).second);
        });
    if (!waited.ok()) {
      ADD_FAILURE() << waited;
      break;
    }
  }
  return outputs;
}

bool HasNoChildren() {
  return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
}

TEST(ProcessesTest, AWorkerKeepsWhatItHasFromJobToJob) {
  int num_jobs = 0;
  Workers workers(1,
                  [&](const std::string&) { return absl::StrCat(++num_jobs); });
  for (int job = 0; job < 3; ++job) workers.Give(job, "");
  const Outputs outputs = WaitForAll(&workers);
  for (int job = 0; job < 3; ++job) {
    EXPECT_EQ(*outputs.at(job), absl::StrCat(job + 1));
  }
  EXPECT_EQ(num_jobs, 0);  // the parent's copy is unchanged
}

TEST(ProcessesTest, AThousandJobsTakeTwoProcesses) {
  std::set<std::string> pids;
  std::set<int> seen;
  Jobs jobs;
  jobs.num_jobs = 1000;
  jobs.num_processes = 2;
  jobs.run = [](int) { return absl::StrCat(getpid()); };
  jobs.done = [&](int job, const absl::StatusOr<std::string>& output) {
    seen.insert(job);
    pids.insert(*output);
  };
  jobs.stop = [] { return false; };
  ASSERT_TRUE(RunJobs(jobs).ok());
  EXPECT_EQ(seen.size(), 1000);
  EXPECT_LE(pids.size(), 2);
  EXPECT_TRUE(HasNoChildren());
}

TEST(ProcessesTest, InputsAndOutputsOfManyBytesAndOfNone) {
  Workers workers(2, [](const std::string& input) { return input + input; });
  const std::string large(5 << 20, 'x');
  workers.Give(0, large);
  workers.Give(1, "");
  workers.Give(2, std::string("\0y", 2));
  const Outputs outputs = WaitForAll(&workers);
  EXPECT_EQ(*outputs.at(0), large + large);
  EXPECT_EQ(*outputs.at(1), "");
  EXPECT_EQ(*outputs.at(2), std::string("\0y\0y", 4));
}

TEST(ProcessesTest, AnErrorOfAJobIsItsOutput) {
  Workers workers(1, [](const std::string&) -> absl::StatusOr<std::string> {
    return absl::NotFoundError("no such thing");
  });
  workers.Give(7, "");
  EXPECT_EQ(WaitForAll(&workers).at(7).status(),
            absl::NotFoundError("no such thing"));
}

TEST(ProcessesTest, ACrashCostsItsOwnJobOnlyAndNamesTheSignal) {
  Workers workers(2, [](const std::string& input) {
    int signal = 0;
    if (absl::SimpleAtoi(input, &signal)) raise(signal);
    if (input == "exit") _exit(3);
    return input;
  });
  workers.Give(0, absl::StrCat(SIGKILL));
  workers.Give(1, absl::StrCat(SIGTERM));
  workers.Give(2, "exit");
  for (int job = 3; job < 20; ++job) workers.Give(job, "fine");
  const Outputs outputs = WaitForAll(&workers);
  ASSERT_EQ(outputs.size(), 20);
  EXPECT_TRUE(absl::IsInternal(outputs.at(0).status()));
  EXPECT_THAT(outputs.at(0).status().message(), HasSubstr("Killed (signal 9"));
  EXPECT_THAT(outputs.at(1).status().message(),
              HasSubstr("Terminated (signal 15)"));
  EXPECT_THAT(outputs.at(2).status().message(), HasSubstr("exit code 3"));
  for (int job = 3; job < 20; ++job) EXPECT_EQ(*outputs.at(job), "fine");
}

TEST(ProcessesTest, AWorkerKilledBetweenJobsCostsNone) {
  Workers workers(1, [](const std::string&) { return absl::StrCat(getpid()); });
  workers.Give(0, "");
  pid_t pid = 0;
  ASSERT_TRUE(absl::SimpleAtoi(*WaitForAll(&workers).at(0), &pid));
  kill(pid, SIGKILL);
  siginfo_t info;  // waits without reaping the child
  ASSERT_EQ(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
  workers.Give(1, "");
  const Outputs outputs = WaitForAll(&workers);
  ASSERT_TRUE(outputs.at(1).ok()) << outputs.at(1).status();
  EXPECT_NE(*outputs.at(1), absl::StrCat(pid));
}

TEST(ProcessesTest, AnInterruptedJobIsCancelled) {
  Workers workers(1, [](const std::string&) {
    raise(SIGINT);
    return std::string();
  });
  workers.Give(0, "");
  EXPECT_TRUE(absl::IsCancelled(WaitForAll(&workers).at(0).status()));
}

TEST(ProcessesTest, AJobOverItsTimeIsKilledAndOthersGoOn) {
  Workers workers(
      2,
      [](const std::string& input) {
        if (input == "slow") pause();
        return input;
      },
      /*time_limit_seconds=*/0.2);
  workers.Give(0, "slow");
  for (int job = 1; job < 10; ++job) workers.Give(job, "fine");
  const Outputs outputs = WaitForAll(&workers);
  ASSERT_EQ(outputs.size(), 10);
  EXPECT_EQ(
      outputs.at(0).status(),
      absl::DeadlineExceededError("took longer than 0.2 s, the time limit"));
  for (int job = 1; job < 10; ++job) EXPECT_EQ(*outputs.at(job), "fine");
}

TEST(ProcessesTest, AVeryLongTimeLimitIsNone) {
  for (const double seconds : {1e10, 1e308}) {
    Workers workers(
        1, [](const std::string& input) { return input; }, seconds);
    workers.Give(0, "fine");
    EXPECT_EQ(*WaitForAll(&workers).at(0), "fine");
  }
}

TEST(ProcessesTest, ClearEndsWhatIsInLineAndAtWork) {
  Workers workers(1, [](const std::string&) {
    pause();
    return std::string();
  });
  workers.Give(0, "");
  workers.Give(1, "");
  ASSERT_TRUE(
      workers.Wait([](int, const absl::StatusOr<std::string>&) {}).ok());
  workers.Clear();
  EXPECT_EQ(workers.num_unfinished(), 0);
}

TEST(ProcessesTest, StopEndsAllChildrenAtOnce) {
  int num_done = 0;
  Jobs jobs;
  jobs.num_jobs = 100;
  jobs.num_processes = 3;
  jobs.run = [](int job) {
    if (job > 0) pause();
    return std::string();
  };
  jobs.done = [&](int, const absl::StatusOr<std::string>&) { ++num_done; };
  jobs.stop = [&] { return num_done > 0; };
  ASSERT_TRUE(RunJobs(jobs).ok());
  EXPECT_EQ(num_done, 1);
  EXPECT_TRUE(HasNoChildren());
}

// The middle process has a worker, which has a child of its own. kill -9 of the
// first process ends all three. This process inherits the orphans and reaps
// them.
TEST(ProcessesTest, KillNineOfTheParentLeavesNoWorkerAndNoChildOfIt) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const pid_t parent = ForkChild();
  if (parent == 0) {
    Workers workers(1, [&](const std::string&) {
      // The last of the three writes: from here on, each ends with its parent.
      if (ForkChild() == 0) (void)!write(fds[1], "w", 1);
      pause();
      return std::string();
    });
    workers.Give(0, "");
    while (true) {
      (void)workers.Wait([](int, const absl::StatusOr<std::string>&) {});
    }
  }
  close(fds[1]);
  char byte = 0;
  ASSERT_EQ(read(fds[0], &byte, 1), 1);  // all three are running
  kill(parent, SIGKILL);
  int num_killed = 0;
  for (int status = 0; waitpid(-1, &status, 0) > 0;) {
    num_killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 1 : 0;
  }
  EXPECT_EQ(num_killed, 3);
  close(fds[0]);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace weir::worker_pool_test
