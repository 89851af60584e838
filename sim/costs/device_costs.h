// SPDX-License-Identifier: Apache-2.0
// Costs that do not depend on how layers are cut into stages.
#ifndef WEIR_SIM_COSTS_DEVICE_COSTS_H_
#define WEIR_SIM_COSTS_DEVICE_COSTS_H_

#include "absl/status/statusor.h"
#include "calibrate/profile/device_profile.pb.h"
#include "calibrate/profile/runtime.pb.h"
#include "models/recipe.pb.h"
#include "scenarios/scenario.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {

// Returns the rates, memory and slowdowns of a device, without stages.
// `plain_links`: collectives are not modelled. Returns InvalidArgument if the
// device has no peak for the format of the scenario's GEMMs.
absl::StatusOr<DeviceCosts> CostsOfDevice(const DeviceProfile& device,
                                          const Runtime& runtime,
                                          const Recipe& recipe,
                                          const Scenario& scenario,
                                          int num_gpus, bool plain_links);

// Returns the multiprocessors that the kernels of DeepEP occupy.
int DispatchMultiprocessors(const Communication& communication);

// Sets the numbers of GPUs among which weights, optimizer states and experts
// are distributed.
void SetShards(const scenarios::ResolvedScenario& scenario, Costs* costs);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_DEVICE_COSTS_H_
