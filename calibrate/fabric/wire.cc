// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace weir::calibrate {
namespace {

// Returns a timeout for poll: rounded up, so that a wait never ends early, and
// at most a minute, after which the caller checks again.
int MillisecondsUntil(absl::Time deadline) {
  const double seconds = absl::ToDoubleSeconds(deadline - absl::Now());
  return static_cast<int>(std::ceil(std::clamp(seconds, 0.0, 60.0) * 1000));
}

absl::Status Gone() {
  return absl::UnavailableError("the peer closed the connection");
}

}  // namespace

ControlWire::~ControlWire() { close(fd_); }

absl::Status ControlWire::Send(const google::protobuf::MessageLite& message,
                               absl::Time deadline) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::util::SerializeDelimitedToZeroCopyStream(message,
                                                               &stream);
  }
  const std::lock_guard<std::mutex> lock(sending_);
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n =
        send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n >= 0) {
      sent += n;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Gone();
    pollfd waiting{fd_, POLLOUT, 0};
    if (poll(&waiting, 1, MillisecondsUntil(deadline)) == 0 &&
        absl::Now() >= deadline) {
      return absl::DeadlineExceededError("the peer does not read");
    }
  }
  return absl::OkStatus();
}

absl::Status ControlWire::Fill() {
  char buffer[1 << 14];
  // The limit keeps a flooding sender from starving the others.
  for (int i = 0; i < 64; ++i) {
    const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
    if (n > 0) {
      received_.append(buffer, n);
      if (n < static_cast<ssize_t>(sizeof buffer)) return absl::OkStatus();
      continue;
    }
    if (n == 0) return Gone();
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return absl::OkStatus();
    return Gone();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ControlWire::ExtractMessage(
    google::protobuf::MessageLite* message, size_t max_bytes) {
  constexpr size_t kLongestVarint = 5;
  google::protobuf::io::CodedInputStream coded(
      reinterpret_cast<const uint8_t*>(received_.data()),
      static_cast<int>(std::min(received_.size(), max_bytes)));
  uint32_t size = 0;
  if (!coded.ReadVarint32(&size)) {
    if (received_.size() < kLongestVarint) return false;
    return absl::InvalidArgumentError("received an invalid message");
  }
  if (size > max_bytes) {
    return absl::InvalidArgumentError("received an invalid message");
  }
  const size_t begin = coded.CurrentPosition();
  if (received_.size() < begin + size) return false;
  const bool whole =
      message->ParseFromArray(received_.data() + begin, static_cast<int>(size));
  received_.erase(0, begin + size);
  if (!whole) {
    return absl::InvalidArgumentError("received an invalid message");
  }
  return true;
}

absl::Status ControlWire::Receive(google::protobuf::MessageLite* message,
                                  absl::Time deadline, size_t max_bytes) {
  while (true) {
    const absl::StatusOr<bool> taken = ExtractMessage(message, max_bytes);
    if (!taken.ok()) return taken.status();
    if (*taken) return absl::OkStatus();
    if (WaitReadable({fd_}, deadline).empty()) {
      return absl::DeadlineExceededError("the peer sent nothing");
    }
    if (absl::Status filled = Fill(); !filled.ok()) {
      // Data received before the close is still used.
      const absl::StatusOr<bool> last = ExtractMessage(message, max_bytes);
      return last.ok() && *last ? absl::OkStatus() : filled;
    }
  }
}

std::vector<int> WaitReadable(const std::vector<int>& fds,
                              absl::Time deadline) {
  std::vector<pollfd> waiting;
  for (const int fd : fds) waiting.push_back({fd, POLLIN, 0});
  std::vector<int> readable;
  while (readable.empty()) {
    const int n =
        poll(waiting.data(), waiting.size(), MillisecondsUntil(deadline));
    if (n == 0 && absl::Now() >= deadline) break;
    for (size_t i = 0; n > 0 && i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) readable.push_back(static_cast<int>(i));
    }
  }
  return readable;
}

}  // namespace weir::calibrate
