// SPDX-License-Identifier: Apache-2.0
// Network measurements as parameters of a device profile, and as tables.
#ifndef WEIR_CALIBRATE_FABRIC_FABRIC_PROFILE_H_
#define WEIR_CALIBRATE_FABRIC_FABRIC_PROFILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "calibrate/fabric/measure_fabric.h"
#include "calibrate/fabric/record.pb.h"
#include "calibrate/fit/fit_collectives.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

// Returns the measurements without any fit.
NetworkRecord RecordOf(const NetworkMeasurements& measured,
                       const Provenance& provenance);

// Fits the median over the pairs of a class. Returns the errors of
// FitTransfer(). Requires: at least one pair of that distance.
absl::StatusOr<LinkClass> FitLinkClass(const NetworkMeasurements& measured,
                                       LinkClass::Distance distance,
                                       int num_channels,
                                       absl::string_view source);

// Returns `start` with the measured values of the network: link classes,
// collectives (with residual and coverage) and memory of communicators.
// Unmeasured link classes keep their values. Replaces the provenance; if
// `start` was measured on a GPU, keeps it and only adds the network's ranks,
// nodes and NCCL version, and a remark if the messages were between other GPUs.
// Fits collectives between nodes with the adapter rate of the measured pairs.
// Adds failed fits to the remarks of the provenance. Returns InvalidArgument if
// no parameters fit the times.
absl::StatusOr<DeviceProfile> ProfileOf(const DeviceProfile& start,
                                        const NetworkMeasurements& measured,
                                        const Provenance& provenance);

// Sets the MEASURED parameters of a communicator's memory from the observed
// steps. Parameters without a measured step are not changed. Requires: valid
// arguments.
void SetCommunicatorMemory(const NetworkMeasurements& measured,
                           absl::string_view source, CollectiveModel* model);

// Returns, for example, "2 nodes, 16 ranks, NVIDIA GPU, NCCL 2.28.9,
// 2026-11-20".
std::string SourceOf(const Provenance& provenance);

// Returns a text table for every link class and collective. Classes without a
// fit in the profile (in a functional check) show only the measurements.
std::string ReportNetwork(const NetworkMeasurements& measured,
                          const DeviceProfile* profile);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_FABRIC_PROFILE_H_
