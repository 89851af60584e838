// SPDX-License-Identifier: Apache-2.0
// A network that is only reckoned: times by distance from known figures, with
// noise, so that what is fitted can be compared with what is true.
#ifndef WEIR_TESTS_CALIBRATE_NETWORK_PRETEND_TRANSPORT_H_
#define WEIR_TESTS_CALIBRATE_NETWORK_PRETEND_TRANSPORT_H_

#include <string>
#include <vector>

#include "calibrate/collective_model.pb.h"
#include "calibrate/measured_costs.pb.h"
#include "calibrate/network/command.h"

namespace weir {

struct PretendOptions {
  // A folder that all ranks see: who joins a communicator leaves a file there.
  std::string folder;
  // "die:3:40": rank 3 kills itself at its 40th operation; also "stop" (it
  // freezes), "hang" (in the transfer), "late" (the transfer is given up),
  // "error" and "nogpu:2:0" (rank 2 has none). Empty: all is well.
  std::string trouble;
  double noise = 0.01;  // standard deviation of the times' logarithms
  std::string leaf;     // as Slurm would say it; empty: as Slurm says
};

// Time of a message: concave, two or three pieces.
std::vector<TransferPiece> PretendPieces(LinkClass::Distance distance);

// Of the collectives.
CollectiveModel PretendCollectives();

// Bytes per second of the adapters between nodes, by their datasheet.
inline constexpr double kPretendAdapter = 25e9 / 0.85;

TransportFactory PretendNetwork(PretendOptions options);

}  // namespace weir

#endif  // WEIR_TESTS_CALIBRATE_NETWORK_PRETEND_TRANSPORT_H_
