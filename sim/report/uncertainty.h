// SPDX-License-Identifier: Apache-2.0
// The error of a predicted time, and the part of it that lies outside the
// measured range. docs/uncertainty.md derives both.
#ifndef WEIR_SIM_REPORT_UNCERTAINTY_H_
#define WEIR_SIM_REPORT_UNCERTAINTY_H_

#include "results/result.pb.h"
#include "scenarios/scenario.h"
#include "sim/report/gpu_work.h"

namespace weir::sim {

// Computes the uncertainty to first order, from the batch's critical path:
// changes each model parameter, each GEMM shape, each kind of other kernel and
// each collective by one standard deviation, one at a time, prices everything
// again, and treats the changes of the logarithm as independent.
Uncertainty UncertaintyOf(const scenarios::ResolvedScenario& scenario,
                          const GpuWork& work);

// Standard deviations of the logarithm of measured over predicted time, for
// steps that are faster and slower than predicted.
struct LogErrors {
  double faster = 0, slower = 0;
};
LogErrors TotalLogErrors(const Uncertainty& uncertainty);

// Sets the uncertainty of a result and the interval that contains nine of ten
// times. Warns of a device, runtime or number format without a measured step on
// record, and of each kind of cost of which at least 5 % of the time is
// outside the device's Coverage. Requires: batch_seconds and parts are set;
// `work` is that of the busiest GPU.
void FillUncertainty(const scenarios::ResolvedScenario& scenario,
                     const GpuWork& work, Result* result);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_UNCERTAINTY_H_
