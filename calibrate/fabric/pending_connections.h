// SPDX-License-Identifier: Apache-2.0
// Connections to rank 0 that have not yet identified their rank. Any process
// may connect; misbehavior of such a connection costs no more than the
// connection.
#ifndef WEIR_CALIBRATE_FABRIC_PENDING_CONNECTIONS_H_
#define WEIR_CALIBRATE_FABRIC_PENDING_CONNECTIONS_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "calibrate/fabric/control.pb.h"
#include "calibrate/fabric/wire.h"

namespace weir::calibrate {

// Dropped connections: all are counted, the first few are described.
class DroppedConnections {
 public:
  void Add(std::string description);
  // Returns "; dropped 7 connections: A, B, C, D, E, ..."; empty if none.
  std::string ToString() const;

 private:
  size_t count_ = 0;
  std::vector<std::string> first_;
};

class PendingConnections {
 public:
  using Greet = std::function<void(std::unique_ptr<ControlWire> wire,
                                   const Hello& hello)>;

  explicit PendingConnections(DroppedConnections* dropped)
      : dropped_(dropped) {}

  // Waits for a connection or data, at most until `deadline`.
  void Wait(const Listener& listener, absl::Time deadline) const;

  // Accepts connections. If there are too many, or no descriptors are left,
  // drops the one that has been silent for longest.
  void Accept(Listener* listener);

  // Calls `greet` with each complete greeting. Drops connections that were
  // closed, sent something else, or sent nothing in time.
  void Read(const Greet& greet);

 private:
  struct Pending {
    std::unique_ptr<ControlWire> wire;
    absl::Time until;
  };
  DroppedConnections* const dropped_;
  std::list<Pending> pending_;  // in order of arrival
  bool out_of_descriptors_ = false;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_PENDING_CONNECTIONS_H_
