// SPDX-License-Identifier: Apache-2.0
// A fake network: times by distance from known parameters, with noise, so that
// fitted parameters can be compared with the true ones.
#ifndef WEIR_TESTS_CALIBRATE_FABRIC_FAKE_TRANSPORT_H_
#define WEIR_TESTS_CALIBRATE_FABRIC_FAKE_TRANSPORT_H_

#include <string>
#include <vector>

#include "calibrate/fabric/command.h"
#include "calibrate/profile/collective_model.pb.h"
#include "calibrate/profile/measured_costs.pb.h"

namespace weir::calibrate {

struct FakeTransportOptions {
  // A folder shared by all ranks. A rank that joins a communicator leaves a
  // file there.
  std::string folder;
  // "die:3:40": rank 3 kills itself at its 40th operation. Also "stop" (it
  // freezes), "hang" (in the transfer), "late" (the transfer is given up),
  // "error", and "nogpu:2:0" (rank 2 has no GPU). Empty: no failure.
  std::string trouble;
  double noise = 0.01;  // standard deviation of the times' logarithms
  std::string leaf;     // Slurm's topology address; empty: from Slurm
};

// Returns the time of a message at `distance`, with two pieces.
std::vector<TransferPiece> FakePieces(LinkClass::Distance distance);

// Returns the model of the collectives.
CollectiveModel FakeCollectives();

// Datasheet bytes per second of the adapters between nodes.
inline constexpr double kFakeAdapter = 25e9 / 0.85;

TransportFactory FakeNetwork(FakeTransportOptions options);

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_FABRIC_FAKE_TRANSPORT_H_
