// SPDX-License-Identifier: Apache-2.0
// Protobuf messages over TCP, every wait with an end.
#ifndef WEIR_CALIBRATE_NETWORK_WIRE_H_
#define WEIR_CALIBRATE_NETWORK_WIRE_H_

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace weir {

// One connection. Send may be called while another thread receives.
class ControlWire {
 public:
  explicit ControlWire(int fd) : fd_(fd) {}
  ~ControlWire();
  ControlWire(const ControlWire&) = delete;
  ControlWire& operator=(const ControlWire&) = delete;

  int fd() const { return fd_; }

  // Unavailable: the other end is gone. DeadlineExceeded: it does not read.
  absl::Status Send(const google::protobuf::MessageLite& message,
                    absl::Time deadline);

  // Takes in what has arrived, without waiting. Unavailable: the other end is
  // gone.
  absl::Status Fill();

  // The next whole message of what was taken in; false: there is none yet.
  // InvalidArgument: what came is no such message, or longer than `max_bytes`.
  absl::StatusOr<bool> Take(google::protobuf::MessageLite* message,
                            size_t max_bytes = size_t{16} << 20);

  // Waits for one message.
  absl::Status Receive(google::protobuf::MessageLite* message,
                       absl::Time deadline,
                       size_t max_bytes = size_t{16} << 20);

 private:
  const int fd_;
  std::mutex sending_;
  std::string received_;
};

// Returns a wire over a connected socket, which it owns and makes non-blocking.
std::unique_ptr<ControlWire> WireOf(int fd);

class Listener {
 public:
  // Listens on the first of `ports` (0: any) that is free, at those addresses
  // of `hosts` that are this machine's. Listens at all addresses where `hosts`
  // is empty or none of them is this machine's (address translation). A name
  // that stands for a loopback address only, as a host's own name often does,
  // counts as one of this machine's only with `all_local`: other machines
  // resolve it to another address.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(
      const std::vector<std::string>& hosts, const std::vector<int>& ports,
      bool all_local);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const std::vector<int>& fds() const { return fds_; }
  int port() const { return port_; }

  // Returns the next connection, or null where there is none.
  // ResourceExhausted: this process can open no more descriptors; the
  // connection goes on waiting.
  absl::StatusOr<std::unique_ptr<ControlWire>> Accept();

 private:
  Listener(std::vector<int> fds, int port)
      : fds_(std::move(fds)), port_(port) {}
  const std::vector<int> fds_;
  const int port_;
};

// Tries every address of the host. Unavailable: nobody listens there (yet).
absl::StatusOr<std::unique_ptr<ControlWire>> Connect(const std::string& host,
                                                     int port,
                                                     absl::Time deadline);

// Waits until one of the descriptors can be read; their indices. Empty: none
// until the deadline.
std::vector<int> WaitReadable(const std::vector<int>& fds, absl::Time deadline);

// Addresses of this machine that others may reach, and its name.
std::vector<std::string> OwnAddresses();
std::string HostName();

// "10.0.0.1" of the other end, for messages.
std::string PeerOf(const ControlWire& wire);

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_WIRE_H_
