// SPDX-License-Identifier: Apache-2.0
// The network as SimGrid sees it: links, routes, the flows that share them, and
// its clock. Knows nothing of tasks. Only replay.cc and its drivers include it.
#ifndef WEIR_SIM_PLATFORM_H_
#define WEIR_SIM_PLATFORM_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scenarios/network.h"
#include "sim/task_graph.h"

namespace weir {

// Flows share links max-min fairly. A route that names a link several times
// needs so many times its rate there. One per process at a time; not to be
// forked once it has run.
//
// SimGrid's clock starts at 0 with each network and has nothing to do with the
// caller's seconds: only while flows are under way do both go on, by the same
// seconds.
class Platform {
 public:
  // What Run tells. Both may start flows and set alarms.
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

  // The network from now on, which must outlive its flows. Costs nothing until
  // there are some. REQUIRES: none is under way; bandwidths are finite and > 0.
  void SetNetwork(std::span<const Link> links, std::span<const GpuPair> pairs);

  // A flow starts at `seconds`, which are now, to move bytes over the route of
  // a pair: no latency.
  void StartFlow(int32_t pair, double bytes, int32_t flow, double seconds);
  int num_flows() const;  // under way

  // The one alarm that there is, moved to another time.
  void SetAlarm(double seconds);
  void StopAlarm();

  // Until no flow is under way and no alarm set.
  void Run(Listener* listener);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Makes the linker take nodetach.cc, which mends SimGrid 3.32; does nothing.
void LinkNoDetach();

}  // namespace weir

#endif  // WEIR_SIM_PLATFORM_H_
