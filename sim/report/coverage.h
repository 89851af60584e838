// SPDX-License-Identifier: Apache-2.0
// What measurements on record do not cover: devices, runtimes and formats
// without a measured step, and costs outside the measured range
// (docs/uncertainty.md).
#ifndef WEIR_SIM_REPORT_COVERAGE_H_
#define WEIR_SIM_REPORT_COVERAGE_H_

#include <string>

#include "calibrate/profile/device_profile.pb.h"
#include "results/result.pb.h"
#include "scenarios/scenario.h"
#include "sim/report/gpu_work.h"

namespace weir::sim {

// Returns the profile of the GPUs with this index (GpuWork::device).
const DeviceProfile& DeviceOf(const scenarios::ResolvedScenario& scenario,
                              int device);

// What no measured step on record has.
struct Unrecorded {
  std::string names;    // "T4, pytorch and fp32"; empty: nothing
  std::string formats;  // of the recipe: the interval is not fitted to them
  double error = 0;     // standard deviation of the logarithm of the time
};
Unrecorded UnrecordedOf(const scenarios::ResolvedScenario& scenario,
                        const DeviceProfile& device);

// Adds warnings of what is unrecorded, of assumed rates, and of each kind of
// cost of which at least 5 % of the batch's time is outside the device's
// Coverage. Requires: batch_seconds is set.
void WarnOfCoverage(const scenarios::ResolvedScenario& scenario,
                    const GpuWork& work, const Unrecorded& unrecorded,
                    Result* result);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_COVERAGE_H_
