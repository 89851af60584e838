// SPDX-License-Identifier: Apache-2.0
// Connections to rank 0 that have not said yet which rank they are of. Anybody
// may connect: what such a connection does, or leaves undone, costs no more
// than the connection itself.
#ifndef WEIR_CALIBRATE_NETWORK_NEWCOMERS_H_
#define WEIR_CALIBRATE_NETWORK_NEWCOMERS_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "calibrate/network/control.pb.h"
#include "calibrate/network/wire.h"

namespace weir {

// Connections that were dropped: all are counted, the first few are described.
class DroppedConnections {
 public:
  void Add(std::string description);
  // Returns "; dropped 7 connections: A, B, C, D, E, ..."; empty: none.
  std::string ToString() const;

 private:
  size_t count_ = 0;
  std::vector<std::string> first_;
};

class Newcomers {
 public:
  using Greet = std::function<void(std::unique_ptr<ControlWire> wire,
                                   const Hello& hello)>;

  explicit Newcomers(DroppedConnections* dropped) : dropped_(dropped) {}

  // Waits until somebody connects or says something, at most until `deadline`.
  void Wait(const Listener& listener, absl::Time deadline) const;

  // Accepts those who connect. Where there are too many, or no descriptors are
  // left, drops the one that has said nothing for longest.
  void Accept(Listener* listener);

  // Calls `greet` with each greeting that has arrived whole. Drops connections
  // that were closed, that sent something else or nothing in time.
  void Read(const Greet& greet);

 private:
  struct Newcomer {
    std::unique_ptr<ControlWire> wire;
    absl::Time until;
  };
  DroppedConnections* const dropped_;
  std::list<Newcomer> newcomers_;  // in the order of their arrival
  bool out_of_descriptors_ = false;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_NEWCOMERS_H_
