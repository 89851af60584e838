// SPDX-License-Identifier: Apache-2.0
// Measurements of a network as figures of a device profile, and as tables.
#ifndef WEIR_CALIBRATE_NETWORK_NETWORK_PROFILE_H_
#define WEIR_CALIBRATE_NETWORK_NETWORK_PROFILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "calibrate/device_profile.pb.h"
#include "calibrate/fit/fit_collectives.h"
#include "calibrate/network/measure_network.h"
#include "calibrate/network/record.pb.h"

namespace weir {

// As it is, without any fit.
NetworkRecord RecordOf(const NetworkMeasurements& measured,
                       const Provenance& provenance);

// Median over the pairs of a class, fitted. InvalidArgument: what FitTransfer
// refuses. REQUIRES: a pair of that distance.
absl::StatusOr<LinkClass> FitLinkClass(const NetworkMeasurements& measured,
                                       LinkClass::Distance distance,
                                       int num_channels,
                                       absl::string_view source);

// `start` with what the measurements speak about replaced: link classes (those
// of other distances stay), collectives and their residual and coverage, memory
// of communicators. Provenance too, but for a start that was measured on a GPU:
// it stays that GPU's, with the ranks, nodes and NCCL of the network; messages
// between other GPUs are a remark. Collectives between nodes are fitted against
// adapters as fast as the measured pairs say. What could not be fitted is a
// remark of the provenance. InvalidArgument: no figures explain the times.
absl::StatusOr<DeviceProfile> ProfileOf(const DeviceProfile& start,
                                        const NetworkMeasurements& measured,
                                        const Provenance& provenance);

// MEASURED figures of a communicator's memory from the steps that were seen; a
// step that the measurements do not have leaves its figure. REQUIRES: valid.
void SetCommunicatorMemory(const NetworkMeasurements& measured,
                           absl::string_view source, CollectiveModel* model);

// "2 nodes, 16 ranks, NVIDIA H200, NCCL 2.28.9, 2026-11-20"
std::string SourceOf(const Provenance& provenance);

// A table for every link class and collective, for people. Classes that the
// profile has no fit of (a functional check) show the measurements alone.
std::string ReportNetwork(const NetworkMeasurements& measured,
                          const DeviceProfile* profile);

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_NETWORK_PROFILE_H_
