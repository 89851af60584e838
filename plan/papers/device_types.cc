// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/device_types.h"

namespace weir::plan {
namespace {

// Returns true if `device` is interchangeable with all devices of `type`.
bool IsOfType(const PlannerWork& work, int device,
              const std::vector<int>& type) {
  const auto& rate = work.bytes_per_second;
  const int first = type.front();
  const PlannerDevice& one = work.devices[device];
  const PlannerDevice& other = work.devices[first];
  if (one.speed != other.speed || one.memory_bytes != other.memory_bytes) {
    return false;
  }
  const double inside =
      type.size() > 1 ? rate[type[0]][type[1]] : rate[first][device];
  for (int member : type) {
    if (rate[member][device] != inside || rate[device][member] != inside) {
      return false;
    }
  }
  for (size_t to = 0; to < rate.size(); ++to) {
    const int w = static_cast<int>(to);
    if (w == device || w == first) continue;
    if (rate[device][w] != rate[first][w] || rate[w][device] != rate[w][first])
      return false;
  }
  return true;
}

}  // namespace

DeviceTypes DeviceTypesOf(const PlannerWork& work) {
  DeviceTypes types;
  for (size_t device = 0; device < work.devices.size(); ++device) {
    bool found = false;
    for (std::vector<int>& type : types.devices) {
      found = IsOfType(work, static_cast<int>(device), type);
      if (found) type.push_back(static_cast<int>(device));
      if (found) break;
    }
    if (!found) types.devices.push_back({static_cast<int>(device)});
  }
  for (const std::vector<int>& from : types.devices) {
    std::vector<double>& row = types.bytes_per_second.emplace_back();
    for (const std::vector<int>& to : types.devices) {
      const int other = from == to ? from.back() : to.front();
      row.push_back(work.bytes_per_second[from.front()][other]);
    }
  }
  return types;
}

}  // namespace weir::plan
