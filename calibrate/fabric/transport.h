// SPDX-License-Identifier: Apache-2.0
// Timing of messages between ranks. calibrate/gpu/ implements it with NCCL,
// tests with a simulated network. All functions return Aborted if another rank
// or the network failed, and the errors of the device.
#ifndef WEIR_CALIBRATE_FABRIC_TRANSPORT_H_
#define WEIR_CALIBRATE_FABRIC_TRANSPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "calibrate/pricing/collective_seconds.h"
#include "calibrate/profile/provenance.pb.h"

namespace weir::calibrate {

enum class PairMode { kOneWay, kBothWays, kPingPong };

// A group of ranks that can exchange messages.
class Communicator {
 public:
  virtual ~Communicator() = default;
  // Returns the mean time of one operation over `num_repeats`, on this rank.
  // All ranks call it with the same arguments. `bytes` is defined as for
  // CheapestCollective(). Returns DeadlineExceeded if the watchdog aborted it.
  virtual absl::StatusOr<double> TimeCollective(models::CollectiveKind kind,
                                                double bytes,
                                                int num_repeats) = 0;
  // Times ranks `from` and `to` of this communicator; others return at once.
  // Returns DeadlineExceeded likewise.
  virtual absl::StatusOr<double> TimePair(PairMode mode, int from, int to,
                                          double bytes, int num_repeats) = 0;
};

// This process's device and communication library.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual const Provenance& provenance() const = 0;
  // Bus address of the GPU and the targets of its NVLinks ("nvswitch 0", ...),
  // which determine distances between ranks; unique among the GPUs of a node.
  virtual std::string gpu_address() const = 0;
  virtual std::vector<std::string> switch_addresses() const = 0;
  virtual double memory_in_use_bytes() = 0;
  // Returns the id of a new communicator, for its rank 0 to pass to the others.
  virtual absl::StatusOr<std::string> MakeId() = 0;
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Join(
      absl::string_view id, int num_ranks, int rank) = 0;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_TRANSPORT_H_
