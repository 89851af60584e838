// SPDX-License-Identifier: Apache-2.0
// Versions of the libraries that a GPU runs with.
#ifndef WEIR_CALIBRATE_SOFTWARE_H_
#define WEIR_CALIBRATE_SOFTWARE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "calibrate/provenance.pb.h"

namespace weir {

// Name and version of each, also those that are not known (empty).
std::vector<std::pair<absl::string_view, std::string>> VersionsOf(
    const Software& software);

// "driver 580.65.06, CUDA 13.0"; without what is not known.
std::string SoftwareText(const Software& software);

// Notes each that is no version.
void CheckSoftware(absl::string_view field, const Software& software,
                   Problems* problems);

// Of a profile whose kernels and whose messages between GPUs were measured in
// two runs: kernels stay those of their GPU and libraries, messages are what
// NCCL made of them.
Provenance BothProvenances(const Provenance& kernels,
                           const Provenance& network);

}  // namespace weir

#endif  // WEIR_CALIBRATE_SOFTWARE_H_
