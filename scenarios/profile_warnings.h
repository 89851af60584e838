// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_SCENARIOS_PROFILE_WARNINGS_H_
#define WEIR_SCENARIOS_PROFILE_WARNINGS_H_

#include <string>
#include <vector>

#include "calibrate/device_profile.pb.h"
#include "scenarios/cluster.pb.h"
#include "scenarios/scenario.h"

namespace weir {

// What speaks against a profile: measured kernels that nobody knows the GPU of,
// other versions of libraries than `software` where both are known.
std::vector<std::string> ProfileWarnings(const DeviceProfile& profile,
                                         const Software& software);

// What speaks against parts of cards (DeviceProfile::card_share, which
// `profile` has) where these GPUs of the cluster, which have the profile, are
// used: nodes whose GPUs are not a whole number of cards, several cards where
// there may be one.
std::vector<std::string> CardShareWarnings(const DeviceProfile& profile,
                                           const Cluster& cluster,
                                           const std::vector<int>& used_gpus);

// A profile for GPUs that are not of its kind: by name, multiprocessors or
// memory. Empty: they are.
std::string OtherGpuWarning(const DeviceProfile& profile,
                            const DeviceProfile& of_cluster);

}  // namespace weir

#endif  // WEIR_SCENARIOS_PROFILE_WARNINGS_H_
