// SPDX-License-Identifier: Apache-2.0
// Protobuf messages over TCP; every wait has a deadline.
#ifndef WEIR_CALIBRATE_FABRIC_WIRE_H_
#define WEIR_CALIBRATE_FABRIC_WIRE_H_

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

namespace weir::calibrate {

// One connection. Send() may be called while another thread receives.
class ControlWire {
 public:
  explicit ControlWire(int fd) : fd_(fd) {}
  ~ControlWire();
  ControlWire(const ControlWire&) = delete;
  ControlWire& operator=(const ControlWire&) = delete;

  int fd() const { return fd_; }

  // Returns Unavailable if the other end is gone, DeadlineExceeded if it does
  // not read.
  absl::Status Send(const google::protobuf::MessageLite& message,
                    absl::Time deadline);

  // Buffers the data that has arrived, without waiting. Returns Unavailable if
  // the other end is gone.
  absl::Status Fill();

  // Extracts the next complete buffered message; returns false if there is none
  // yet. Returns InvalidArgument if the data is not such a message, or longer
  // than `max_bytes`.
  absl::StatusOr<bool> ExtractMessage(google::protobuf::MessageLite* message,
                                      size_t max_bytes = size_t{16} << 20);

  // Waits for one message. Returns DeadlineExceeded if none arrives, and the
  // errors of Fill and ExtractMessage.
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
  // Listens on the first free one of `ports` (0: any), at those addresses of
  // `hosts` that belong to this machine. Listens at all addresses if `hosts` is
  // empty or none of them belongs to this machine (address translation). A name
  // that resolves only to a loopback address, as a host's own name often does,
  // counts as this machine's only with `all_local`, because other machines
  // resolve it to another address. Returns Unavailable if none of the ports is
  // free.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(
      const std::vector<std::string>& hosts, const std::vector<int>& ports,
      bool all_local);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const std::vector<int>& fds() const { return fds_; }
  int port() const { return port_; }

  // Returns the next connection, or null if there is none. Returns
  // ResourceExhausted if this process cannot open more descriptors; the
  // connection stays queued.
  absl::StatusOr<std::unique_ptr<ControlWire>> Accept();

 private:
  Listener(std::vector<int> fds, int port)
      : fds_(std::move(fds)), port_(port) {}
  const std::vector<int> fds_;
  const int port_;
};

// Tries every address of the host. Returns Unavailable if nothing listens there
// (yet).
absl::StatusOr<std::unique_ptr<ControlWire>> Connect(const std::string& host,
                                                     int port,
                                                     absl::Time deadline);

// Waits until a descriptor is readable. Returns the indices of the readable
// ones; empty at the deadline.
std::vector<int> WaitReadable(const std::vector<int>& fds, absl::Time deadline);

// Returns addresses of this machine that others may reach, and its name.
std::vector<std::string> OwnAddresses();
std::string HostName();

// Returns the address of the other end ("10.0.0.1"), for messages.
std::string PeerOf(const ControlWire& wire);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_WIRE_H_
