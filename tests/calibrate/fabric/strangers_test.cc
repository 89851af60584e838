// SPDX-License-Identifier: Apache-2.0
// Checks that processes that are no ranks cannot exhaust the file descriptors
// of rank 0.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/textproto.h"
#include "tests/calibrate/fabric/rank0.h"

namespace weir::calibrate::strangers_test {

// Runs rank 0 of two with few file descriptors. Exits with 0 if both ranks met.
[[noreturn]] void LeadWithFewDescriptors(const Rendezvous& rendezvous,
                                         rlim_t num_descriptors) {
  const rlimit few{num_descriptors, num_descriptors};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(2);
  Leader leader(LaunchOf(2), OptionsOf(30));
  const absl::Status met = leader.Connect(rendezvous);
  leader.Finish(0);
  _exit(met.ok() ? 0 : 1);
}

// Connections that never greet correctly: silent ones, other protocols, half a
// greeting and wrong tokens. Each holds a descriptor of rank 0 while it is
// open.
class StrangersTest : public testing::TestWithParam<rlim_t> {
 protected:
  static constexpr int kNumStrangers = 600;

  void SetUp() override {
    // The sanitizer's checks of virtual calls write to a pipe and abort if they
    // cannot open one.
    if (std::getenv("UBSAN_OPTIONS") != nullptr) {
      GTEST_SKIP() << "UndefinedBehaviorSanitizer needs descriptors itself";
    }
    // This process needs one descriptor per stranger.
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, kNumStrangers + 100);
    if (limit.rlim_cur > limit.rlim_max) GTEST_SKIP() << "too few descriptors";
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    meeting_.file = absl::StrCat(testing::TempDir(), "weir_meet_few_", getpid(),
                                 "_", GetParam());
    meeting_.all_local = true;
    meeting_.token = kToken;
    std::filesystem::remove(meeting_.file);
    child_ = fork();
    if (child_ == 0) LeadWithFewDescriptors(meeting_, GetParam());
    MeetingPoint point;
    while (point.port() == 0) {
      absl::SleepFor(absl::Milliseconds(5));
      const auto text = ReadFile(meeting_.file);
      if (text.ok()) {
        ASSERT_TRUE(ParseTextProto(meeting_.file, *text, &point).ok());
      }
      ASSERT_EQ(waitpid(child_, nullptr, WNOHANG), 0);
    }
    port_ = static_cast<int>(point.port());
  }

  void TearDown() override { std::filesystem::remove(meeting_.file); }

  std::unique_ptr<ControlWire> Call() const {
    auto wire = Connect("127.0.0.1", port_, Later());
    EXPECT_TRUE(wire.ok()) << wire.status();
    return wire.ok() ? *std::move(wire) : nullptr;
  }

  // Sends the bytes of stranger `i`. Rank 0 may have closed the connection by
  // then.
  static void Speak(int i, ControlWire* wire) {
    std::string bytes;
    if (i % 5 == 1) bytes = "GET / HTTP/1.1\r\n\r\n";
    if (i % 5 == 2) bytes = std::string(5000, '\xff');
    if (i % 5 == 3) bytes = std::string("\x40\n\x3e", 3);
    if (i % 5 == 4) {
      Hello hello = HelloOf(1, 1000 + i, 2);
      hello.set_token("a guess");
      wire->Send(hello, Later()).IgnoreError();
    }
    send(wire->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  Rendezvous meeting_;
  pid_t child_ = -1;
  int port_ = 0;
};

TEST_P(StrangersTest, DoNotKeepARankOut) {
  std::vector<std::unique_ptr<ControlWire>> strangers;
  for (int i = 0; i < kNumStrangers; ++i) {
    strangers.push_back(Call());
    ASSERT_NE(strangers.back(), nullptr);
    Speak(i, strangers.back().get());
  }
  // A rank's connection may be dropped among so many; it retries.
  std::unique_ptr<ControlWire> rank;
  Hello hello = HelloOf(1, 1, 2);
  for (int attempt = 1; attempt <= 20; ++attempt) {
    hello.set_attempt(attempt);
    rank = Call();
    Answer answer;
    if (rank->Send(hello, Later()).ok() &&
        rank->Receive(&answer, Later()).ok() && answer.refusal().empty()) {
      break;
    }
    rank.reset();
  }
  ASSERT_NE(rank, nullptr);
  ASSERT_TRUE(rank->Send(Answer(), Later()).ok());
  Request finish;
  while (rank->Receive(&finish, Later()).ok()) {
    if (finish.what() == Request::FINISH) break;
  }
  rank.reset();
  int result = -1;
  waitpid(child_, &result, 0);
  EXPECT_EQ(result, 0);
}

// With 40, there are fewer descriptors than connections that rank 0 would keep;
// with 256, there are more.
INSTANTIATE_TEST_SUITE_P(Descriptors, StrangersTest, testing::Values(40, 256));

}  // namespace weir::calibrate::strangers_test
