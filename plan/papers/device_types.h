// SPDX-License-Identifier: Apache-2.0
// Devices that no planner can tell apart.
#ifndef WEIR_PLAN_PAPERS_DEVICE_TYPES_H_
#define WEIR_PLAN_PAPERS_DEVICE_TYPES_H_

#include <vector>

#include "plan/planner_work.h"

namespace weir {

struct DeviceTypes {
  std::vector<std::vector<int>> devices;  // [type], ascending
  // [from][to]; of two devices of one type on the diagonal.
  std::vector<std::vector<double>> bytes_per_second;

  int num_types() const { return static_cast<int>(devices.size()); }
};

// Two devices are of one type when speed and memory are equal, and so are their
// bandwidths to and from everybody else, and those between any two of the type.
// O(devices^2 types).
DeviceTypes DeviceTypesOf(const PlannerWork& work);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_DEVICE_TYPES_H_
