// SPDX-License-Identifier: Apache-2.0
// Nothing waits for ever: every wait for the GPU has an end.
#ifndef WEIR_CALIBRATE_GPU_WATCHDOG_H_
#define WEIR_CALIBRATE_GPU_WATCHDOG_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

// DeadlineExceeded names `what`; from then on DeviceIsHung().
absl::Status WaitFor(cudaEvent_t event, double timeout_seconds,
                     absl::string_view what);
absl::Status WaitFor(cudaStream_t stream, double timeout_seconds,
                     absl::string_view what);

// Runs `work` in a thread of its own, for calls that wait inside a library.
// After DeadlineExceeded the thread goes on: `work` owns what it uses.
absl::Status RunWithin(double timeout_seconds, absl::string_view what,
                       std::function<absl::Status()> work);

// A wait has ended without its event: nothing more can be destroyed or waited
// for.
bool DeviceIsHung();

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_WATCHDOG_H_
