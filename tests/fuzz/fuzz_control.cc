// SPDX-License-Identifier: Apache-2.0
// Control messages of a network calibration. Whole messages arrive as they were
// sent, in pieces of any size. Anything else is an error, and a wire never uses
// more memory than the longest message that it expects. A rank answers any
// sequence of requests; those with unknown values do not reach its GPU.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "calibrate/fabric/control.pb.h"
#include "calibrate/fabric/rank_work.h"
#include "calibrate/fabric/wire.h"
#include "tests/fuzz/generate_message.h"
#include "tests/fuzz/target.h"

namespace weir::fuzz {
namespace {

using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

constexpr size_t kMostBytes = 1 << 16;

std::unique_ptr<Message> NewMessage(int type) {
  switch (type) {
    case 0:
      return std::make_unique<Hello>();
    case 1:
      return std::make_unique<Request>();
    default:
      return std::make_unique<Answer>();
  }
}

std::string Frame(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::util::SerializeDelimitedToZeroCopyStream(message, &stream);
  return bytes;
}

// One end of a connection that can write arbitrary bytes.
class Peer {
 public:
  Peer() {
    int fds[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    fd_ = fds[0];
    wire_ = std::make_unique<calibrate::ControlWire>(fds[1]);
  }
  ~Peer() { Hang(); }

  void Write(const std::string& bytes) {
    REQUIRE(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            std::ssize(bytes));
  }
  void Hang() {
    if (fd_ < 0) return;
    // Takes effect at once, even while another process, such as a reader of
    // /proc, holds a reference to the socket.
    shutdown(fd_, SHUT_RDWR);
    close(fd_);
    fd_ = -1;
  }
  calibrate::ControlWire& wire() { return *wire_; }

 private:
  int fd_ = -1;
  std::unique_ptr<calibrate::ControlWire> wire_;
};

// Takes all received messages. Stops at the first error.
absl::Status TakeAll(Peer* peer, int type,
                     std::vector<std::unique_ptr<Message>>* taken) {
  while (true) {
    auto message = NewMessage(type);
    const auto whole = peer->wire().ExtractMessage(message.get(), kMostBytes);
    if (!whole.ok()) return whole.status();
    if (!*whole) return absl::OkStatus();
    taken->push_back(std::move(message));
    REQUIRE(taken->size() <= kMostBytes);
  }
}

bool CheckWhole(Choices* choices) {
  const int type = choices->Int(0, 2);
  std::vector<std::unique_ptr<Message>> sent, taken;
  std::string bytes;
  for (int left = choices->Int(1, 4); left > 0; --left) {
    sent.push_back(NewMessage(type));
    FillMessage(sent.back().get(), choices);
    bytes += Frame(*sent.back());
  }
  Peer peer;
  while (!bytes.empty()) {
    const std::string piece = bytes.substr(0, choices->Int(1, 200));
    bytes.erase(0, piece.size());
    peer.Write(piece);
    REQUIRE_OK(peer.wire().Fill());
    REQUIRE_OK(TakeAll(&peer, type, &taken));
  }
  REQUIRE(taken.size() == sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    REQUIRE_THAT(MessageDifferencer::Equals(*taken[i], *sent[i]),
                 sent[i]->DebugString());
  }
  peer.Hang();
  REQUIRE(absl::IsUnavailable(peer.wire().Fill()));
  return true;
}

// Sends frames of another type, cut, damaged or arbitrary.
bool CheckHostile(Choices* choices) {
  google::protobuf::LogSilencer silencer;
  std::string bytes;
  if (choices->OneIn(3)) {
    bytes = choices->Bytes(64);
  } else {
    auto message = NewMessage(choices->Int(0, 2));
    FillMessage(message.get(), choices);
    bytes = Damage(Frame(*message), choices);
  }
  Peer peer;
  peer.Write(bytes);
  if (choices->OneIn(2)) peer.Hang();
  peer.wire().Fill().IgnoreError();
  std::vector<std::unique_ptr<Message>> taken;
  const absl::Status status = TakeAll(&peer, choices->Int(0, 2), &taken);
  REQUIRE(status.ok() || absl::IsInvalidArgument(status));
  return status.ok();
}

// Requires that the arguments are known modes and collectives.
class CheckingCommunicator : public calibrate::Communicator {
 public:
  absl::StatusOr<double> TimeCollective(models::CollectiveKind kind, double,
                                        int) override {
    REQUIRE(kind < models::CollectiveKind::kSendReceive);
    return 1;
  }
  absl::StatusOr<double> TimePair(calibrate::PairMode mode, int, int, double,
                                  int) override {
    REQUIRE(mode >= calibrate::PairMode::kOneWay &&
            mode <= calibrate::PairMode::kPingPong);
    return 1;
  }
};

class CheckingTransport : public calibrate::Transport {
 public:
  const Provenance& provenance() const override { return provenance_; }
  std::string gpu_address() const override { return ""; }
  std::vector<std::string> switch_addresses() const override { return {}; }
  double memory_in_use_bytes() override { return 0; }
  absl::StatusOr<std::string> MakeId() override { return ""; }
  absl::StatusOr<std::unique_ptr<calibrate::Communicator>> Join(
      absl::string_view, int, int) override {
    return std::make_unique<CheckingCommunicator>();
  }

 private:
  const Provenance provenance_;
};

// Performs requests in any order, some with unknown values of enums.
bool CheckRequests(Choices* choices) {
  calibrate::RankWork work(
      calibrate::RankLaunch(), calibrate::TransportRequest(),
      [](const calibrate::TransportRequest&)
          -> absl::StatusOr<std::unique_ptr<calibrate::Transport>> {
        return std::make_unique<CheckingTransport>();
      });
  if (!choices->OneIn(4)) {
    for (const Request::Do what : {Request::PREPARE, Request::JOIN}) {
      Request request;
      request.set_what(what);
      REQUIRE(work.Perform(request).error().empty());
    }
  }
  bool timed = false;
  for (int left = choices->Int(1, 12); left > 0; --left) {
    Request request;
    FillMessage(&request, choices);
    if (choices->OneIn(4)) SpoilMessage(&request, choices);
    const Answer answer = work.Perform(request);
    const bool ok = answer.code() == static_cast<int>(absl::StatusCode::kOk);
    REQUIRE_THAT(
        ok || answer.code() == static_cast<int>(absl::StatusCode::kInternal),
        request.DebugString());
    REQUIRE(ok == answer.error().empty());
    if (answer.seconds() == 0) continue;
    timed = true;
    REQUIRE_THAT(request.what() == Request::TIME_PAIR
                     ? Request::PairMode_IsValid(request.pair_mode())
                     : request.what() == Request::TIME_COLLECTIVE &&
                           Request::Collective_IsValid(request.collective()),
                 request.DebugString());
  }
  return timed;
}

}  // namespace

bool RunInput(Choices* choices) {
  if (choices->OneIn(4)) return CheckRequests(choices);
  return choices->OneIn(3) ? CheckHostile(choices) : CheckWhole(choices);
}

}  // namespace weir::fuzz
