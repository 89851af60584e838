// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_SCENARIOS_PROFILE_WARNINGS_H_
#define WEIR_SCENARIOS_PROFILE_WARNINGS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibrate/profile/device_profile.pb.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/scenario.h"

namespace weir::scenarios {

// Returns warnings about a profile: measured kernels without a known GPU, or
// library versions that differ from `software` where both are known.
std::vector<std::string> ProfileWarnings(const DeviceProfile& profile,
                                         const Software& software);

// Returns warnings about a profile of GPU partitions (`profile` has
// partition_slowdown) on the GPUs in use, all of which have this profile: nodes
// whose partitions do not form whole GPUs, and nodes that use several GPUs
// where one may suffice.
std::vector<std::string> PartitionWarnings(const DeviceProfile& profile,
                                           const Cluster& cluster,
                                           const std::vector<int>& used_gpus);

// Returns a warning if the profile was measured on a different kind of GPU, by
// name, multiprocessors or memory, than `of_cluster`. Otherwise returns "".
std::string OtherGpuWarning(const DeviceProfile& profile,
                            const DeviceProfile& of_cluster);

// Returns a warning if a measured profile predicts replays and is used for a
// framework, or the other way round (DeviceProfile::Purpose). Otherwise returns
// "". Links of replays are emulated (Cluster::plain_links).
std::string PurposeWarning(const DeviceProfile& profile, const Cluster& cluster,
                           absl::string_view runtime);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_PROFILE_WARNINGS_H_
