// SPDX-License-Identifier: Apache-2.0
// Checks which processes may join rank 0, and that no other process can end the
// wait for the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
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
#include "calibrate/fabric/control.pb.h"
#include "calibrate/fabric/follower.h"
#include "calibrate/fabric/leader.h"
#include "tests/calibrate/fabric/rank0.h"

namespace weir::calibrate::rendezvous_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Rank 0 of `num_ranks`, in its own thread.
class Meeting {
 public:
  explicit Meeting(int num_ranks, double timeout_seconds = 30)
      : num_ranks_(num_ranks),
        leader_(LaunchOf(num_ranks), OptionsOf(timeout_seconds)) {
    meeting_.file = absl::StrCat(testing::TempDir(), "weir_meet_", getpid());
    std::filesystem::remove(meeting_.file);
    meeting_.all_local = true;
    meeting_.token = kToken;
    thread_ = std::thread([this] { met_ = leader_.Connect(meeting_); });
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

  // Returns rank 0's answer to this greeting.
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

  // Joins as a rank does.
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

TEST(ConnectTest, GreetingsThatDoNotFitEndNothing) {
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
    EXPECT_EQ(meeting.Refusal(hello), "has an invalid rank, expected 1 to 1");
  }
  const auto wire = meeting.Join(1, 1);
  const absl::Status met = meeting.Join();
  EXPECT_TRUE(met.ok()) << met;
}

TEST(ConnectTest, SaysWhatWasDroppedWhenTimeIsOver) {
  Meeting meeting(2, 2);
  meeting.Refusal(HelloOf(1, 1, 3));
  std::vector<std::unique_ptr<ControlWire>> closed;
  for (int i = 0; i < 7; ++i) closed.push_back(meeting.Call());
  closed.clear();
  const absl::Status met = meeting.Join();
  EXPECT_EQ(met.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(met.message()),
              AllOf(HasSubstr("rank 1 of 2 did not connect to rank 0 (host n0"),
                    HasSubstr("dropped 8 connections: rank 1 (host n1, pid "
                              "4711) was launched as one of 3 ranks"),
                    HasSubstr("127.0.0.1 without a greeting, ...")));
}

// The first greeting was accepted only after its rank had given up on it.
TEST(ConnectTest, ARanksOwnRetryReplacesItsFirstConnection) {
  Meeting meeting(3);
  const auto first = meeting.Call();
  Hello hello = HelloOf(1, 7, 3);
  EXPECT_EQ(meeting.Greet(first.get(), hello).refusal(), "");
  const auto second = meeting.Call();
  hello.set_attempt(2);
  EXPECT_EQ(meeting.Greet(second.get(), hello).refusal(), "");
  ASSERT_TRUE(second->Send(Answer(), Later()).ok());
  Answer nothing;  // ignores heartbeats
  EXPECT_EQ(first->Receive(&nothing, Later()).code(),
            absl::StatusCode::kUnavailable);
  const auto other = meeting.Join(2, 8);
  const absl::Status met = meeting.Join();
  EXPECT_TRUE(met.ok()) << met;
}

TEST(ConnectTest, AnEarlierConnectionReplacesNoLaterOne) {
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

// Reads messages until rank 0 sends a request, and answers it. Returns false if
// the connection ends before.
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

TEST(ConnectTest, TheFirstOfTwoThatClaimARankIsKept) {
  Meeting meeting(3);
  const auto first = meeting.Join(1, 7);
  const auto stranger = meeting.Call();
  const Answer answer = meeting.Greet(stranger.get(), HelloOf(1, 666, 3));
  EXPECT_EQ(answer.refusal(),
            "duplicates rank 1 (host n1, pid 4711), which is already "
            "connected");
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
      meeting.leader()->SendAndWait({{0, request}, {1, request}, {2, request}});
  EXPECT_TRUE(answers.ok()) << answers.status();
  ranks.join();
}

// Refuses one greeting and exits, as rank 0 does once all others have joined.
void RefuseOnce(std::unique_ptr<Listener> listener) {
  std::unique_ptr<ControlWire> wire;
  while (wire == nullptr) {
    WaitReadable(listener->fds(), Later());
    auto accepted = listener->Accept();
    ASSERT_TRUE(accepted.ok()) << accepted.status();
    wire = *std::move(accepted);
  }
  Hello hello;
  EXPECT_TRUE(wire->Receive(&hello, Later()).ok());
  Answer answer;
  answer.set_refusal("duplicates rank 1, which is already connected");
  answer.set_may_retry(true);
  listener.reset();
  EXPECT_TRUE(wire->Send(answer, Later()).ok());
}

TEST(ConnectTest, ARefusalIsKeptWhenRank0HasGone) {
  auto listener = Listener::Open({"127.0.0.1"}, {0}, /*all_local=*/true);
  ASSERT_TRUE(listener.ok()) << listener.status();
  RankLaunch launch = LaunchOf(2);
  launch.rank = 1;
  Rendezvous rendezvous;
  rendezvous.hosts = {"127.0.0.1"};
  rendezvous.ports = {(*listener)->port()};
  FollowerOptions options;
  options.weir_version = "tested";
  options.timeout_seconds = 3;
  options.report_error = [](const absl::Status&) {};
  std::thread leader(RefuseOnce, *std::move(listener));
  const auto follower = Follower::Connect(launch, rendezvous, options);
  leader.join();
  EXPECT_TRUE(absl::IsAborted(follower.status()));
  EXPECT_THAT(
      std::string(follower.status().message()),
      AllOf(HasSubstr("rank 1 (host n0) found rank 0"),
            HasSubstr(
                "refused it: duplicates rank 1, which is already connected"),
            HasSubstr("; then 127.0.0.1")));
}

TEST(ConnectTest, OneThatLeavesMakesRoom) {
  Meeting meeting(3);
  meeting.Join(1, 666);  // disconnects at once
  const auto first = meeting.Join(1, 7);
  const auto other = meeting.Join(2, 8);
  const absl::Status met = meeting.Join();
  EXPECT_TRUE(met.ok()) << met;
}

TEST(ConnectTest, GarbageEndsNothing) {
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

}  // namespace weir::calibrate::rendezvous_test
