// SPDX-License-Identifier: Apache-2.0
#include "scenarios/check_devices.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibrate/profile/device_profile.h"
#include "models/quantization.h"
#include "models/recipe.h"
#include "scenarios/check_training.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/slow_parts.h"

namespace weir::scenarios {
namespace {

// Gives each slow GPU a device of its speed.
void AddSlowGpus(const Cluster& cluster, DeviceNames* devices) {
  devices->speeds.assign(devices->names.size(), SpeedOfAllGpus(cluster));
  for (const auto& [gpu, own_speed] : SlowGpus(cluster)) {
    const double speed = own_speed * SpeedOfAllGpus(cluster);
    devices->gpu_device.resize(NumGpus(cluster), 0);
    const std::string name = devices->names[devices->gpu_device[gpu]];
    size_t index = 0;
    while (index < devices->names.size() &&
           (devices->names[index] != name || devices->speeds[index] != speed)) {
      ++index;
    }
    if (index == devices->names.size()) {
      devices->names.push_back(name);
      devices->speeds.push_back(speed);
    }
    devices->gpu_device[gpu] = static_cast<int>(index);
  }
}

}  // namespace

DeviceNames NamesOfDevices(const Scenario& scenario, const Cluster& cluster) {
  DeviceNames devices;
  for (const NodeGroup& group : cluster.groups()) {
    const std::string& name =
        scenario.profile().empty() ? group.node().device() : scenario.profile();
    const auto at = std::find(devices.names.begin(), devices.names.end(), name);
    const auto index = static_cast<int>(at - devices.names.begin());
    if (at == devices.names.end()) devices.names.push_back(name);
    devices.gpu_device.insert(devices.gpu_device.end(),
                              size_t{group.count()} * group.node().num_gpus(),
                              index);
  }
  if (devices.names.size() == 1) devices.gpu_device.clear();
  AddSlowGpus(cluster, &devices);
  return devices;
}

void CheckQuantizedBlocks(Problems& problems, const Recipe& recipe,
                          const Transformer& transformer) {
  const uint64_t first = recipe.first_blocks_in_16_bits();
  const uint64_t last = recipe.last_blocks_in_16_bits();
  const uint64_t blocks = transformer.num_layers();
  if (blocks == 0 || first + last < blocks) return;
  const std::string expected = absl::StrCat(
      ", expected at most ", blocks - 1, ": recipe ", recipe.name(),
      " needs one of the model's ", blocks, " blocks");
  if (first > 0 && last > 0) {
    problems.Add("", absl::StrCat("training.first_blocks_in_16_bits ", first,
                                  " + training.last_blocks_in_16_bits ", last,
                                  " = ", first + last, expected));
    return;
  }
  problems.Add(first > 0 ? "training.first_blocks_in_16_bits"
                         : "training.last_blocks_in_16_bits",
               absl::StrCat("is ", first + last, expected));
}

void CheckAgainstDevice(Problems& problems, const Scenario& scenario,
                        const Recipe& recipe, const DeviceProfile& device) {
  bool has_rates = true;
  for (const OperandFormat operand : models::FormatsOf(recipe)) {
    if (calibrate::FindRate(device, models::Name(operand)) != nullptr) continue;
    has_rates = false;
    std::vector<std::string> known;
    for (const MatrixRate& rate : device.matrix_rates()) {
      known.push_back(rate.format());
    }
    problems.Add(
        "training.recipe",
        absl::StrCat("is \"", recipe.name(), "\", which needs a rate for ",
                     models::Name(operand), ", but device ", device.name(),
                     " has rates only for ", absl::StrJoin(known, ", ")));
  }
  CheckFormatsAgainst(problems, scenario, recipe, device);
  const uint32_t dispatching =
      scenario.communication().dispatch_multiprocessors();
  const double most = device.num_multiprocessors().value();
  if (most > 0 && dispatching > most) {
    problems.Add("communication.dispatch_multiprocessors",
                 absl::StrCat("is ", dispatching, ", expected at most ", most,
                              ", those of ", device.name()));
  }
  if (!has_rates) return;  // the other formats follow from the recipe
  const Precision precision = scenario.training().precision();
  if (precision == PRECISION_UNSPECIFIED) return;  // the model did not load
  const std::string format = precision == FP32         ? "fp32"
                             : precision == MIXED_BF16 ? "bf16"
                                                       : "fp16";
  for (const MatrixRate& rate : device.matrix_rates()) {
    if (rate.format() == format) return;
  }
  problems.Add("training.precision",
               absl::StrCat("is ", Precision_Name(precision), ", but device ",
                            device.name(), " has no peak rate for ", format));
}

}  // namespace weir::scenarios
