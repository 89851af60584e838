// SPDX-License-Identifier: Apache-2.0
// Versions of the libraries used with a GPU.
#ifndef WEIR_CALIBRATE_PROFILE_SOFTWARE_H_
#define WEIR_CALIBRATE_PROFILE_SOFTWARE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "calibrate/profile/provenance.pb.h"

namespace weir::calibrate {

// Returns the name and version of each library; unknown versions are empty.
std::vector<std::pair<absl::string_view, std::string>> VersionsOf(
    const Software& software);

// Returns, for example, "driver 580.65.06, CUDA 13.0"; omits unknown versions.
std::string SoftwareText(const Software& software);

// Reports each value that is not a version.
void CheckSoftware(absl::string_view field, const Software& software,
                   Problems* problems);

// Returns the provenance of a profile whose kernels and messages between GPUs
// were measured in two runs. All fields describe the run of the kernels, except
// that the NCCL version and the ranks come from the network run.
Provenance BothProvenances(const Provenance& kernels,
                           const Provenance& network);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_SOFTWARE_H_
