// SPDX-License-Identifier: Apache-2.0
// The interface of the module that uses SimGrid. SimGrid loads some twenty
// libraries, which takes longer than most commands of weir. So programs contain
// the module as data, and platform.cc loads it when two flows share a link.
#ifndef WEIR_SIM_ENGINE_SIMGRID_PLATFORM_H_
#define WEIR_SIM_ENGINE_SIMGRID_PLATFORM_H_

#include <cstdint>
#include <span>

#include "scenarios/cluster/network.h"
#include "sim/engine/platform.h"
#include "sim/engine/task_graph.h"

namespace weir::sim {

// The functions of Platform, on SimGrid. At most one instance per process.
class SharedFlows {
 public:
  virtual ~SharedFlows() = default;
  virtual void SetNetwork(std::span<const scenarios::Link> links,
                          std::span<const GpuPair> pairs) = 0;
  virtual void StartFlow(int32_t pair, double bytes, int32_t flow,
                         double seconds) = 0;
  virtual int num_flows() const = 0;
  virtual void SetAlarm(double seconds) = 0;
  virtual void StopAlarm() = 0;
  virtual void Run(Platform::Listener* listener) = 0;
};

}  // namespace weir::sim

// The only function of the module that weir calls. The caller owns the object.
extern "C" __attribute__((visibility("default"))) weir::sim::SharedFlows*
weir_make_simgrid_platform();

#endif  // WEIR_SIM_ENGINE_SIMGRID_PLATFORM_H_
