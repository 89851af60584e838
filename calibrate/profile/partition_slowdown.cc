// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/partition_slowdown.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weir::calibrate {
namespace {

constexpr uint32_t kMaxPartitions = 1024;
constexpr uint32_t kMaxMultiprocessors = 100000;

}  // namespace

std::vector<double> SharingCurve(const PartitionSlowdown& share,
                                 absl::string_view pass) {
  std::map<uint32_t, double> measured = {{1, 1.0}};
  for (const PartitionSlowdown::Slowdown& slowdown : share.slowdowns()) {
    if (slowdown.pass() == pass)
      measured[slowdown.active()] = slowdown.factor();
  }
  std::vector<double> curve;
  for (uint32_t active = 1; active <= share.num_partitions(); ++active) {
    const auto above = measured.lower_bound(active);
    if (above == measured.end()) {
      curve.push_back(measured.rbegin()->second);
      continue;
    }
    if (above->first == active) {
      curve.push_back(above->second);
      continue;
    }
    const auto below = std::prev(above);
    const double part = static_cast<double>(active - below->first) /
                        static_cast<double>(above->first - below->first);
    curve.push_back(below->second + part * (above->second - below->second));
  }
  return curve;
}

void CheckPartitionSlowdown(const DeviceProfile& profile, Problems* problems) {
  if (!profile.has_partition_slowdown()) return;
  const PartitionSlowdown& share = profile.partition_slowdown();
  problems->CheckRange("partition_slowdown.num_partitions",
                       share.num_partitions(), 2, kMaxPartitions);
  problems->CheckRange("partition_slowdown.multiprocessors",
                       share.multiprocessors(), 1, kMaxMultiprocessors);
  // `active` of the last slowdown, by pass.
  std::map<std::string, uint32_t> last;
  for (int i = 0; i < share.slowdowns_size(); ++i) {
    const PartitionSlowdown::Slowdown& slowdown = share.slowdowns(i);
    const std::string field =
        absl::StrCat("partition_slowdown.slowdowns[", i, "]");
    if (std::find(std::begin(kSharedPasses), std::end(kSharedPasses),
                  slowdown.pass()) == std::end(kSharedPasses)) {
      problems->Add(
          absl::StrCat(field, ".pass"),
          absl::StrCat("is \"", slowdown.pass(), "\", expected one of: ",
                       absl::StrJoin(kSharedPasses, ", ")));
    }
    problems->CheckRange(absl::StrCat(field, ".active"), slowdown.active(), 2,
                         std::max(share.num_partitions(), 2U));
    uint32_t& before = last[slowdown.pass()];
    if (slowdown.active() <= before) {
      problems->Add(
          absl::StrCat(field, ".active"),
          absl::StrCat("is ", slowdown.active(), " after ", before,
                       " of the same pass, expected ascending numbers"));
    }
    before = std::max(before, slowdown.active());
    problems->CheckRange(absl::StrCat(field, ".factor"), slowdown.factor(),
                         1e-3, 1e3);
  }
}

}  // namespace weir::calibrate
