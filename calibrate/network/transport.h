// SPDX-License-Identifier: Apache-2.0
// How messages between ranks are timed. calibrate/gpu/ implements it with NCCL,
// tests with a pretended network.
#ifndef WEIR_CALIBRATE_NETWORK_TRANSPORT_H_
#define WEIR_CALIBRATE_NETWORK_TRANSPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "calibrate/collective_seconds.h"
#include "calibrate/provenance.pb.h"

namespace weir {

enum class PairMode { kOneWay, kBothWays, kPingPong };

// Some ranks that can talk to each other.
class Communicator {
 public:
  virtual ~Communicator() = default;
  // Seconds of one operation, mean of `num_repeats`, on this rank; all ranks
  // call it alike. `bytes` as CollectiveSeconds counts them. DeadlineExceeded:
  // the watchdog aborted it.
  virtual absl::StatusOr<double> TimeCollective(CollectiveKind kind,
                                                double bytes,
                                                int num_repeats) = 0;
  // Between ranks `from` and `to` of this communicator; others return at once.
  virtual absl::StatusOr<double> TimePair(PairMode mode, int from, int to,
                                          double bytes, int num_repeats) = 0;
};

// This process's device and library.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual const Provenance& provenance() const = 0;
  // Bus address of the GPU and what its NVLinks lead to ("nvswitch 0", ...), so
  // that ranks can tell who is near; unique among the GPUs of a node.
  virtual std::string gpu_address() const = 0;
  virtual std::vector<std::string> switch_addresses() const = 0;
  virtual double memory_in_use_bytes() = 0;
  // An id that rank 0 of a new communicator makes and the others get.
  virtual absl::StatusOr<std::string> MakeId() = 0;
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Join(
      absl::string_view id, int num_ranks, int rank) = 0;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_TRANSPORT_H_
