// SPDX-License-Identifier: Apache-2.0
// What a run uses of its devices and links: the rates of its kernels, and the
// utilization of links over time.
#ifndef WEIR_PLAN_RESOURCES_RUN_RESOURCES_H_
#define WEIR_PLAN_RESOURCES_RUN_RESOURCES_H_

#include "results/report/resources.h"
#include "results/result.pb.h"

namespace weir::plan {

// Takes the links from the result, and the kernels from its scenario, which it
// resolves again. Without a scenario (results of replays, files that have
// moved), there are no kernels; results of versions that did not store them
// have no links.
results::RunResources ResourcesOf(const Result& result);

}  // namespace weir::plan

#endif  // WEIR_PLAN_RESOURCES_RUN_RESOURCES_H_
