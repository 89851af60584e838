// SPDX-License-Identifier: Apache-2.0
// The network as SimGrid sees it. Only engine.cc includes this.
#ifndef WEIR_SIM_PLATFORM_H_
#define WEIR_SIM_PLATFORM_H_

#include <simgrid/forward.h>

#include <span>
#include <vector>

#include "scenarios/network.h"
#include "sim/task_graph.h"

namespace weir {

// One SimGrid host per GPU that sends or receives; null for the others.
struct Platform {
  std::vector<simgrid::s4u::Host*> hosts;  // [gpu]
};

// Sets SimGrid up so that a lone flow takes exactly latency + bytes / bandwidth
// and flows share links max-min fairly, and builds hosts, links and the routes
// of `pairs`. Call once per process, after the engine was created.
// REQUIRES: bandwidths are finite and > 0.
Platform BuildPlatform(std::span<const Link> links,
                       const std::vector<GpuPair>& pairs);

// Sets the options that must be set before the first link exists.
void ConfigureSimGrid();

}  // namespace weir

#endif  // WEIR_SIM_PLATFORM_H_
