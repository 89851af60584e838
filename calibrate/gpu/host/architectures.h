// SPDX-License-Identifier: Apache-2.0
// Which cards the compiled kernels run on.
#ifndef WEIR_CALIBRATE_GPU_HOST_ARCHITECTURES_H_
#define WEIR_CALIBRATE_GPU_HOST_ARCHITECTURES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

// Compute capability major.minor against CMake's list of architectures
// ("75-real;80-real;90", or with commas): machine code runs on later cards of
// the same major number, the code that is no "-real" on all later ones.
// FailedPrecondition, one line: "this card (Tesla P40) is sm_61; weir-calibrate
// was built for ...".
absl::Status CheckArchitecture(absl::string_view gpu_name, int major, int minor,
                               absl::string_view compiled);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_HOST_ARCHITECTURES_H_
