// SPDX-License-Identifier: Apache-2.0
// What flows move over the links that several pairs of GPUs use.
#ifndef WEIR_SIM_REPORT_SHARED_LINKS_H_
#define WEIR_SIM_REPORT_SHARED_LINKS_H_

#include <cstddef>

#include "results/result.pb.h"
#include "scenarios/cluster/network.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Links that a result keeps, and intervals of their utilization.
inline constexpr size_t kMostSharedLinks = 16;
inline constexpr size_t kSharedLinkIntervals = 120;

// Sets result->link_use() from the flows of transfers, collectives and
// offloads: the bytes of a flow count evenly over the time in which it moves
// them, on every link of its route. Flows are faster while fewer share a link,
// so if that is more than the link's rate in an interval, the excess counts in
// the nearest intervals that have room. So utilization x rate x interval,
// summed over the intervals, is what the simulator moves over the link from
// result->timeline().from_seconds() on.
// The bytes of a flow are those for which the link alone takes the measured
// time of the message: if a protocol reaches 80 % of the rate, a flow has a
// quarter more bytes than its payload.
void FillSharedLinks(const scenarios::Network& network,
                     const PipelineGraph& graph, const Recording& recording,
                     Result* result);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_SHARED_LINKS_H_
