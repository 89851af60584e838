// SPDX-License-Identifier: Apache-2.0
// Classes of devices that planners need not distinguish.
#ifndef WEIR_PLAN_PAPERS_DEVICE_TYPES_H_
#define WEIR_PLAN_PAPERS_DEVICE_TYPES_H_

#include <vector>

#include "plan/papers/planner_work.h"

namespace weir::plan {

struct DeviceTypes {
  std::vector<std::vector<int>> devices;  // [type], ascending
  // [from][to]; the diagonal is for two devices of one type.
  std::vector<std::vector<double>> bytes_per_second;

  int num_types() const { return static_cast<int>(devices.size()); }
};

// Two devices have the same type if they have equal speed, equal memory and
// equal bandwidths to and from all others, and bandwidths inside the type are
// equal. O(devices^2 types).
DeviceTypes DeviceTypesOf(const PlannerWork& work);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_DEVICE_TYPES_H_
