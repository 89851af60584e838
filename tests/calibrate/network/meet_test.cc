// SPDX-License-Identifier: Apache-2.0
// Who may join rank 0, and that nobody who may not can end the meeting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/textproto.h"
#include "calibrate/network/control.pb.h"
#include "calibrate/network/leader.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kToken[] = "the token of the job";

absl::Time Later() { return absl::Now() + absl::Seconds(30); }

RankLaunch LaunchOf(int num_ranks) {
  RankLaunch launch;
  launch.num_ranks = num_ranks;
  launch.node = "n0";
  return launch;
}

LeaderOptions OptionsOf(double timeout_seconds) {
  LeaderOptions options;
  options.weir_version = "tested";
  options.timeout_seconds = timeout_seconds;
  options.perform = [](const Request&) { return Answer(); };
  options.tell = [](const absl::Status&) {};
  return options;
}

Hello HelloOf(int rank, uint64_t instance, int num_ranks) {
  Hello hello;
  hello.set_token(kToken);
  hello.set_rank(rank);
  hello.set_num_ranks(num_ranks);
  hello.set_node("n1");
  hello.set_pid(4711);
  hello.set_weir_version("tested");
  hello.set_instance(instance);
  hello.set_attempt(1);
  return hello;
}

// Rank 0 of `num_ranks`, in a thread of its own.
class Meeting {
 public:
  explicit Meeting(int num_ranks, double timeout_seconds = 30)
      : num_ranks_(num_ranks),
        leader_(LaunchOf(num_ranks), OptionsOf(timeout_seconds)) {
    meeting_.file = absl::StrCat(testing::TempDir(), "weir_meet_", getpid());
    std::filesystem::remove(meeting_.file);
    meeting_.all_local = true;
    meeting_.token = kToken;
    thread_ = std::thread([this] { met_ = leader_.Meet(meeting_); });
    MeetingPoint point;
    while (point.port() == 0) {
      absl::SleepFor(absl::Milliseconds(5));
      const auto text = ReadFile(meeting_.file);
      if (text.ok()) {
        EXPECT_TRUE(ParseTextProto(meeting_.file, *text, &point).ok());
      }
    }
    port_ = static_cast<int>(point.port());
  }
  ~Meeting() {
    if (thread_.joinable()) thread_.join();
    std::filesystem::remove(meeting_.file);
  }

  std::unique_ptr<ControlWire> Call() const {
    auto wire = Connect("127.0.0.1", port_, Later());
    EXPECT_TRUE(wire.ok()) << wire.status();
    return wire.ok() ? *std::move(wire) : nullptr;
  }

  // What rank 0 says to this greeting.
  Answer Greet(ControlWire* wire, const Hello& hello) const {
    EXPECT_TRUE(wire->Send(hello, Later()).ok());
    Answer answer;
    const absl::Status received = wire->Receive(&answer, Later());
    EXPECT_TRUE(received.ok()) << received;
    return answer;
  }
  std::string Refusal(const Hello& hello) const {
    return Greet(Call().get(), hello).refusal();
  }

  // A rank that comes as ranks do.
  std::unique_ptr<ControlWire> Join(int rank, uint64_t instance) const {
    std::unique_ptr<ControlWire> wire = Call();
    EXPECT_EQ(Greet(wire.get(), HelloOf(rank, instance, num_ranks_)).refusal(),
              "");
    EXPECT_TRUE(wire->Send(Answer(), Later()).ok());
    return wire;
  }

  absl::Status Join() {
    thread_.join();
    return met_;
  }
  Leader* leader() { return &leader_; }

 private:
  const int num_ranks_;
  Leader leader_;
  Rendezvous meeting_;
  absl::Status met_;
  int port_ = 0;
  std::thread thread_;
};

TEST(MeetTest, GreetingsThatDoNotFitEndNothing) {
  Meeting meeting(2);
  Hello hello = HelloOf(1, 1, 2);
  hello.set_token("a guess");
  EXPECT_EQ(meeting.Refusal(hello), "wrong token");
  hello = HelloOf(1, 1, 3);
  EXPECT_EQ(meeting.Refusal(hello),
            "was launched as one of 3 ranks, expected 2 as rank 0");
  hello = HelloOf(1, 1, 2);
  hello.set_weir_version("another");
  EXPECT_EQ(meeting.Refusal(hello),
            "is version another, expected tested as rank 0");
  for (const uint32_t rank : {0u, 2u, 0xffffffffu}) {
    hello = HelloOf(1, 1, 2);
    hello.set_rank(rank);
    EXPECT_EQ(meeting.Refusal(hello), "is no rank from 1 to 1");
  }
  const auto wire = meeting.Join(1, 1);
  const absl::Status met = meeting.Join();
  EXPECT_TRUE(met.ok()) << met;
}

TEST(MeetTest, SaysWhatWasDroppedWhenTimeIsOver) {
  Meeting meeting(2, 2);
  meeting.Refusal(HelloOf(1, 1, 3));
  std::vector<std::unique_ptr<ControlWire>> closed;
  for (int i = 0; i < 7; ++i) closed.push_back(meeting.Call());
  closed.clear();
  const absl::Status met = meeting.Join();
  EXPECT_EQ(met.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(met.message()),
              AllOf(HasSubstr("rank 1 of 2 did not come to rank 0 (host n0"),
                    HasSubstr("dropped 8 connections: rank 1 (host n1, pid "
                              "4711) was launched as one of 3 ranks"),
                    HasSubstr("127.0.0.1 with no greeting, ...")));
}

// The first greeting waited to be accepted until its rank had given it up.
TEST(MeetTest, ARanksOwnRetryReplacesItsFirstConnection) {
  Meeting meeting(3);
  const auto first = meeting.Call();
  Hello hello = HelloOf(1, 7, 3);
  EXPECT_EQ(meeting.Greet(first.get(), hello).refusal(), "");
  const auto second = meeting.Call();
  hello.set_attempt(2);
  EXPECT_EQ(meeting.Greet(second.get(), hello).refusal(), "");
  ASSERT_TRUE(second->Send(Answer(), Later()).ok());
  Answer nothing;  // signs of life apart
  EXPECT_EQ(first->Receive(&nothing, Later()).code(),
            absl::StatusCode::kUnavailable);
  const auto other = meeting.Join(2, 8);
  const absl::Status met = meeting.Join();
  EXPECT_TRUE(met.ok()) << met;
}

TEST(MeetTest, AnEarlierConnectionReplacesNoLaterOne) {
  Meeting meeting(3);
  Hello hello = HelloOf(1, 7, 3);
  hello.set_attempt(2);
  const auto second = meeting.Call();
  EXPECT_EQ(meeting.Greet(second.get(), hello).refusal(), "");
  ASSERT_TRUE(second->Send(Answer(), Later()).ok());
  hello.set_attempt(1);
  EXPECT_NE(meeting.Refusal(hello), "");
  const auto other = meeting.Join(2, 8);
  const absl::Status met = meeting.Join();
  EXPECT_TRUE(met.ok()) << met;
}

// As one that reads what arrives until rank 0 asks something.
bool IsAsked(ControlWire* wire) {
  Request request;
  while (wire->Receive(&request, Later()).ok()) {
    if (request.what() != Request::ANSWER) continue;
    Answer answer;
    answer.set_number(request.number());
    return wire->Send(answer, Later()).ok();
  }
  return false;
}

TEST(MeetTest, TheFirstOfTwoThatClaimARankIsKept) {
  Meeting meeting(3);
  const auto first = meeting.Join(1, 7);
  const auto stranger = meeting.Call();
  const Answer answer = meeting.Greet(stranger.get(), HelloOf(1, 666, 3));
  EXPECT_EQ(answer.refusal(),
            "came while rank 1 (host n1, pid 4711) was there");
  EXPECT_TRUE(answer.may_retry());
  const auto other = meeting.Join(2, 8);
  const absl::Status met = meeting.Join();
  ASSERT_TRUE(met.ok()) << met;
  Request request;
  request.set_what(Request::ANSWER);
  std::thread ranks([&] {
    EXPECT_TRUE(IsAsked(first.get()));
    EXPECT_TRUE(IsAsked(other.get()));
  });
  const auto answers =
      meeting.leader()->Ask({{0, request}, {1, request}, {2, request}});
  EXPECT_TRUE(answers.ok()) << answers.status();
  ranks.join();
}

TEST(MeetTest, OneThatLeavesMakesRoom) {
  Meeting meeting(3);
  meeting.Join(1, 666);  // and is gone
  const auto first = meeting.Join(1, 7);
  const auto other = meeting.Join(2, 8);
  const absl::Status met = meeting.Join();
  EXPECT_TRUE(met.ok()) << met;
}

TEST(MeetTest, GarbageEndsNothing) {
  Meeting meeting(2);
  std::vector<std::unique_ptr<ControlWire>> wires;
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(300, '\xff'),
        std::string("\0", 1), std::string("\x80\x80\x80\x80\x80\x80", 6)}) {
    wires.push_back(meeting.Call());
    ASSERT_EQ(write(wires.back()->fd(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  const auto rank = meeting.Join(1, 1);
  const absl::Status met = meeting.Join();
  EXPECT_TRUE(met.ok()) << met;
}

// Rank 0 in a process that has few descriptors, or exits with 2.
[[noreturn]] void LeadWithFewDescriptors(const Rendezvous& rendezvous) {
  const rlimit few{40, 40};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(2);
  Leader leader(LaunchOf(2), OptionsOf(30));
  const absl::Status met = leader.Meet(rendezvous);
  leader.Finish(0);
  _exit(met.ok() ? 0 : 1);
}

TEST(MeetTest, SilentConnectionsDoNotUseUpDescriptors) {
  Rendezvous meeting;
  meeting.file = absl::StrCat(testing::TempDir(), "weir_meet_few_", getpid());
  meeting.all_local = true;
  meeting.token = kToken;
  std::filesystem::remove(meeting.file);
  const pid_t child = fork();
  if (child == 0) LeadWithFewDescriptors(meeting);
  MeetingPoint point;
  while (point.port() == 0) {
    absl::SleepFor(absl::Milliseconds(5));
    const auto text = ReadFile(meeting.file);
    if (text.ok()) {
      ASSERT_TRUE(ParseTextProto(meeting.file, *text, &point).ok());
    }
    ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  }
  std::vector<std::unique_ptr<ControlWire>> silent;
  for (int i = 0; i < 200; ++i) {
    auto wire = Connect("127.0.0.1", static_cast<int>(point.port()), Later());
    ASSERT_TRUE(wire.ok()) << wire.status();
    silent.push_back(*std::move(wire));
  }
  auto rank = Connect("127.0.0.1", static_cast<int>(point.port()), Later());
  ASSERT_TRUE(rank.ok()) << rank.status();
  ASSERT_TRUE((*rank)->Send(HelloOf(1, 1, 2), Later()).ok());
  Answer answer;
  const absl::Status received = (*rank)->Receive(&answer, Later());
  EXPECT_TRUE(received.ok()) << received;
  ASSERT_TRUE((*rank)->Send(Answer(), Later()).ok());
  Request finish;
  while ((*rank)->Receive(&finish, Later()).ok()) {
    if (finish.what() == Request::FINISH) break;
  }
  rank->reset();
  int result = -1;
  waitpid(child, &result, 0);
  EXPECT_EQ(result, 0);
  std::filesystem::remove(meeting.file);
}

}  // namespace
}  // namespace weir
