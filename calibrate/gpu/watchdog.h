// SPDX-License-Identifier: Apache-2.0
// Waits for the GPU with a time-out.
#ifndef WEIR_CALIBRATE_GPU_WATCHDOG_H_
#define WEIR_CALIBRATE_GPU_WATCHDOG_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir::calibrate {

// Return DeadlineExceeded, with `what`, after the timeout; from then on
// DeviceIsHung() is true. Other errors are those of errors.h.
absl::Status WaitFor(cudaEvent_t event, double timeout_seconds,
                     absl::string_view what);
absl::Status WaitFor(cudaStream_t stream, double timeout_seconds,
                     absl::string_view what);

// Runs `work` in its own thread, for calls that block inside a library. After
// DeadlineExceeded the thread continues, so `work` must own what it uses.
absl::Status RunWithin(double timeout_seconds, absl::string_view what,
                       std::function<absl::Status()> work);

// Returns true if a wait has timed out: destroying handles and further waits
// would block.
bool DeviceIsHung();

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_WATCHDOG_H_
