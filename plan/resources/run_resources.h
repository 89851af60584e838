// SPDX-License-Identifier: Apache-2.0
// What a run uses of its devices and links: the rates of its kernels, and the
// utilization of links over time.
#ifndef WEIR_PLAN_RESOURCES_RUN_RESOURCES_H_
#define WEIR_PLAN_RESOURCES_RUN_RESOURCES_H_

#include "results/report/resources.h"
#include "results/result.pb.h"
#include "scenarios/cluster/network.h"

namespace weir::plan {

// Links that a report shows, and intervals of their utilization.
inline constexpr size_t kMostShownLinks = 16;
inline constexpr size_t kLinkIntervals = 120;

// Resolves the scenario of a result. Without it (results of replays, files
// that have moved) both parts are empty.
results::RunResources ResourcesOf(const Result& result);

// Adds the links that transfers of several pairs of ranks use. The bytes of a
// transfer count evenly over its time on every link of its route, so that
// utilization x rate x interval, summed over intervals, is the bytes of all
// transfers on the link. Collectives are not included. Requires: the timeline
// is valid.
void AddSharedLinks(const Result& result, const scenarios::Network& network,
                    results::RunResources* resources);

}  // namespace weir::plan

#endif  // WEIR_PLAN_RESOURCES_RUN_RESOURCES_H_
