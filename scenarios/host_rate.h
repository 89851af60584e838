// SPDX-License-Identifier: Apache-2.0
// Speed of the host: its optimizer steps (docs/offload.md), and its launches
// (docs/runtimes.md).
#ifndef WEIR_SCENARIOS_HOST_RATE_H_
#define WEIR_SCENARIOS_HOST_RATE_H_

#include "calibrate/profile/device_profile.pb.h"
#include "calibrate/profile/figure.pb.h"
#include "calibrate/profile/runtime.pb.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Returns the assumed bytes per second that an optimizer step on the host reads
// and writes for each GPU: half the rate of the memory of a host whose GPUs are
// connected by PCIe, or by NVLink-C2C if all links to a host are faster than
// PCIe.
Figure AssumedHostOptimizerRate(const Cluster& cluster);

// Sets the rate in the runtime if the scenario needs it and it is absent.
void FillHostOptimizerRate(const Scenario& scenario, const Cluster& cluster,
                           Runtime* runtime);

// Multiplies the runtime's figures for the host's work by the device's
// host_slowdown, if it has one.
void ScaleHostTimes(const DeviceProfile& device, Runtime* runtime);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_HOST_RATE_H_
