// SPDX-License-Identifier: Apache-2.0
// How far off a predicted time may be, and how much of it lies outside of what
// was measured. docs/uncertainty.md derives it.
#ifndef WEIR_SIM_UNCERTAINTY_H_
#define WEIR_SIM_UNCERTAINTY_H_

#include "results/result.pb.h"
#include "scenarios/scenario.h"
#include "sim/gpu_work.h"

namespace weir {

// To first order, from what the batch's critical path takes: each figure, each
// shape of product, each kind of other kernel and each collective is moved by
// one standard deviation, one after the other, all is priced again, and the
// changes of the logarithm count as independent.
Uncertainty UncertaintyOf(const ResolvedScenario& scenario,
                          const GpuWork& work);

double TotalLogError(const Uncertainty& uncertainty);

// Sets the uncertainty of a result and the interval that holds nine of ten
// times, and warns of each kind of cost of which at least 5 % of the time is
// outside of the device's Coverage. REQUIRES: batch_seconds and parts are set;
// `work` is of the busiest GPU.
void FillUncertainty(const ResolvedScenario& scenario, const GpuWork& work,
                     Result* result);

}  // namespace weir

#endif  // WEIR_SIM_UNCERTAINTY_H_
