// SPDX-License-Identifier: Apache-2.0
// The network in SimGrid: links, routes, the flows that share them, and its
// clock. Independent of tasks. Only event_loop.cc and its drivers include this
// header.
#ifndef WEIR_SIM_ENGINE_PLATFORM_H_
#define WEIR_SIM_ENGINE_PLATFORM_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scenarios/cluster/network.h"
#include "sim/engine/task_graph.h"

namespace weir::sim {

// Flows share links max-min fairly. A route that names a link k times uses k
// times its rate there. At most one instance per process, which must not fork
// once it has run.
//
// SimGrid's clock starts at 0 with each network and is unrelated to the
// caller's seconds: both advance by the same seconds only while flows are in
// flight.
class Platform {
 public:
  // Receives the events of Run. Both functions may start flows and set alarms.
  class Listener {
   public:
    virtual void FlowEnded(int32_t flow, double seconds) = 0;
    virtual void AlarmRang() = 0;

   protected:
    ~Listener() = default;
  };

  Platform();
  ~Platform();
  Platform(const Platform&) = delete;
  Platform& operator=(const Platform&) = delete;

  // Sets the network from now on, which must outlive its flows. Costs nothing
  // until a flow starts. Requires: no flow is in flight; bandwidths are finite
  // and > 0.
  void SetNetwork(std::span<const scenarios::Link> links,
                  std::span<const GpuPair> pairs);

  // Starts a flow at `seconds`, which is the current time, that moves `bytes`
  // over the route of a pair without latency.
  void StartFlow(int32_t pair, double bytes, int32_t flow, double seconds);
  int num_flows() const;  // in flight

  // Moves the only alarm to another time.
  void SetAlarm(double seconds);
  void StopAlarm();

  // Runs until no flow is in flight and no alarm is set.
  void Run(Listener* listener);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Makes the linker include nodetach.cc, which works around a cost of SimGrid
// 3.32; does nothing itself.
void LinkNoDetach();

}  // namespace weir::sim

#endif  // WEIR_SIM_ENGINE_PLATFORM_H_
