// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/wire.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "calibrate/fabric/control.pb.h"
#include "gtest/gtest.h"

namespace weir::calibrate::wire_test {

struct Ends {
  Ends() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    wire = std::make_unique<ControlWire>(fds[0]);
    other = fds[1];
  }
  ~Ends() {
    if (other >= 0) close(other);
  }
  void Put(const std::string& bytes) {
    EXPECT_EQ(write(other, bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  std::unique_ptr<ControlWire> wire;
  int other;
};

absl::Time Soon() { return absl::Now() + absl::Milliseconds(50); }

TEST(WireTest, AMessageArrivesByteByByte) {
  Ends ends;
  Request request;
  request.set_text(std::string(300, 'x'));
  std::string bytes = request.SerializeAsString();
  const size_t size = bytes.size();
  bytes.insert(
      0, {static_cast<char>((size & 127) | 128), static_cast<char>(size >> 7)});
  Request received;
  for (size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_TRUE(ends.wire->Fill().ok());
    const auto taken = ends.wire->ExtractMessage(&received);
    ASSERT_TRUE(taken.ok());
    EXPECT_FALSE(*taken);
    ends.Put(bytes.substr(i, 1));
  }
  ASSERT_TRUE(ends.wire->Receive(&received, Soon()).ok());
  EXPECT_EQ(received.text(), request.text());
}

TEST(WireTest, WhatIsSentIsReceived) {
  Ends ends;
  ControlWire other(std::exchange(ends.other, -1));
  Answer answer;
  answer.set_id(std::string("\0\xff\x80", 3));
  ASSERT_TRUE(other.Send(answer, Soon()).ok());
  ASSERT_TRUE(other.Send(Answer(), Soon()).ok());
  Answer received;
  ASSERT_TRUE(ends.wire->Receive(&received, Soon()).ok());
  EXPECT_EQ(received.id(), answer.id());
  ASSERT_TRUE(ends.wire->Receive(&received, Soon()).ok());
  EXPECT_EQ(received.id(), "");
}

TEST(WireTest, SilenceEndsAtTheDeadline) {
  Ends ends;
  Request request;
  EXPECT_EQ(ends.wire->Receive(&request, Soon()).code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(WireTest, AClosedEndIsNoticedAfterItsLastMessage) {
  Ends ends;
  ends.Put(std::string("\0", 1));  // an empty message
  close(std::exchange(ends.other, -1));
  Request request;
  EXPECT_TRUE(ends.wire->Receive(&request, Soon()).ok());
  EXPECT_EQ(ends.wire->Receive(&request, Soon()).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(ends.wire->Send(request, Soon()).code(),
            absl::StatusCode::kUnavailable);
}

TEST(WireTest, GarbageIsNoMessage) {
  Ends ends;
  ends.Put("GET / HTTP/1.1\r\nHost: n1\r\n\r\n" + std::string(200, '\xff'));
  Hello hello;
  EXPECT_EQ(ends.wire->Receive(&hello, Soon()).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(WireTest, ATooLongMessageIsRefusedAtOnce) {
  Ends ends;
  ends.Put("\xff\xff\xff\x7f");
  Hello hello;
  EXPECT_EQ(ends.wire->Receive(&hello, Soon(), 4096).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(WireTest, WhoDoesNotReadDoesNotHoldUpForever) {
  Ends ends;
  Request request;
  request.set_text(std::string(1 << 22, 'x'));
  EXPECT_EQ(ends.wire->Send(request, Soon()).code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(ListenerTest, TakesTheFirstFreePort) {
  const auto first = Listener::Open({"127.0.0.1"}, {0}, true);
  ASSERT_TRUE(first.ok()) << first.status();
  const int port = (*first)->port();
  EXPECT_FALSE(Listener::Open({"127.0.0.1"}, {port}, true).ok());
  const auto second = Listener::Open({"127.0.0.1"}, {port, 0}, true);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE((*second)->port(), port);
  const auto wire = Connect("127.0.0.1", port, absl::Now() + absl::Seconds(5));
  ASSERT_TRUE(wire.ok()) << wire.status();
  const auto closed = Connect("no-such-host.invalid", port, Soon());
  EXPECT_EQ(closed.status().code(), absl::StatusCode::kUnavailable);
}

// 127.0.0.2 is this machine too, so a listener on all addresses is reachable
// there.
bool IsFoundAt(const std::string& host, int port) {
  return Connect(host, port, absl::Now() + absl::Seconds(5)).ok();
}

TEST(ListenerTest, ListensOnlyWhereItIsToldTo) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto listener = Listener::Open({host}, {0}, false);
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_TRUE(IsFoundAt("127.0.0.1", (*listener)->port())) << host;
    EXPECT_FALSE(IsFoundAt("127.0.0.2", (*listener)->port())) << host;
  }
  const auto two = Listener::Open({"127.0.0.1", "127.0.0.2"}, {0}, false);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_TRUE(IsFoundAt("127.0.0.1", (*two)->port()));
  EXPECT_TRUE(IsFoundAt("127.0.0.2", (*two)->port()));
  EXPECT_FALSE(IsFoundAt("127.0.0.3", (*two)->port()));
}

TEST(ListenerTest, ListensEverywhereWhereTheAddressIsAnothersOrUnknown) {
  for (const char* host : {"192.0.2.1", "no-such-host.invalid"}) {
    const auto listener = Listener::Open({host}, {0}, false);
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_TRUE(IsFoundAt("127.0.0.2", (*listener)->port())) << host;
  }
  const auto anywhere = Listener::Open({}, {0}, false);
  ASSERT_TRUE(anywhere.ok()) << anywhere.status();
  EXPECT_TRUE(IsFoundAt("127.0.0.2", (*anywhere)->port()));
}

}  // namespace weir::calibrate::wire_test
