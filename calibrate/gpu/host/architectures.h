// SPDX-License-Identifier: Apache-2.0
// Checks whether a GPU can run the compiled kernels.
#ifndef WEIR_CALIBRATE_GPU_HOST_ARCHITECTURES_H_
#define WEIR_CALIBRATE_GPU_HOST_ARCHITECTURES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir::calibrate {

// Checks compute capability major.minor against CMake's list of architectures
// ("75-real;80-real;90", or with commas): machine code runs on later GPUs of
// the same major version, entries without "-real" also on all later GPUs.
// Returns FailedPrecondition in one line: "this GPU (Tesla P40) is sm_61;
// weir-calibrate was built for ...".
absl::Status CheckArchitecture(absl::string_view gpu_name, int major, int minor,
                               absl::string_view compiled);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_HOST_ARCHITECTURES_H_
