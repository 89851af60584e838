// SPDX-License-Identifier: Apache-2.0
// What slow GPUs, links and leaf switches mean for a run.
#ifndef WEIR_SIM_REPORT_SLOW_PARTS_H_
#define WEIR_SIM_REPORT_SLOW_PARTS_H_

#include <string>

#include "scenarios/cluster/cluster.pb.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/window.h"

namespace weir::sim {

// Returns "slow: gpu17 x0.8 (on the critical path), node3.nic2 x0.5", at most
// ten parts; "" if no part of the cluster is slow. Requires: the GPUs of the
// graph are those of the cluster, not representatives.
std::string DescribeSlowParts(const Cluster& cluster,
                              const PipelineInputs& inputs,
                              const PipelineGraph& graph,
                              const Recording& recording, const Window& window);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_SLOW_PARTS_H_
