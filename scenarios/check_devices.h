// SPDX-License-Identifier: Apache-2.0
// The devices of a scenario, and checks of its number formats against them.
#ifndef WEIR_SCENARIOS_CHECK_DEVICES_H_
#define WEIR_SCENARIOS_CHECK_DEVICES_H_

#include <string>
#include <vector>

#include "base/problems.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/model.pb.h"
#include "models/recipe.pb.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// The devices of the cluster's GPUs, each name and speed once, in order; with
// only the scenario's profile if that is given.
struct DeviceNames {
  std::vector<std::string> names;
  // [GPU] index into names; empty for a single name.
  std::vector<int> gpu_device;
  // [name] relative to other GPUs of the kind; a slow GPU is a device of its
  // own.
  std::vector<double> speeds;
};
DeviceNames NamesOfDevices(const Scenario& scenario, const Cluster& cluster);

// Checks that a recipe with formats of 8 or 4 bits leaves blocks to quantize.
void CheckQuantizedBlocks(Problems& problems, const Recipe& recipe,
                          const Transformer& transformer);

// Checks that the device supports the scenario's precision and the formats of
// its recipe.
void CheckAgainstDevice(Problems& problems, const Scenario& scenario,
                        const Recipe& recipe, const DeviceProfile& device);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CHECK_DEVICES_H_
