// SPDX-License-Identifier: Apache-2.0
// Bytes by class over the moments of a step, counted as the simulator counts
// them: what happens at one moment counts when all of it has happened.
#ifndef WEIR_CALIBRATE_REPLAY_MEMORY_LOG_H_
#define WEIR_CALIBRATE_REPLAY_MEMORY_LOG_H_

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "calibrate/replay/rank_device.h"
#include "calibrate/replay/replay_record.h"

namespace weir {

class MemoryLog {
 public:
  // There from before the first step on.
  void AddForGood(ReplayMemory kind, double bytes) {
    for_good_[static_cast<int>(kind)] += bytes;
  }
  // Below 0: freed.
  void Add(const MomentPtr& at, ReplayMemory kind, double bytes) {
    if (bytes != 0) events_.push_back({at, kind, bytes});
  }
  void AddFor(const MomentPtr& from, const MomentPtr& to, ReplayMemory kind,
              double bytes) {
    Add(from, kind, bytes);
    Add(to, kind, -bytes);
  }
  void Clear() { events_.clear(); }

  // Timeline and peak of the step; the moments must have passed.
  absl::Status Resolve(RankDevice* device, RankRecord* record) const;

 private:
  struct Event {
    MomentPtr at;
    ReplayMemory kind;
    double bytes;
  };
  std::array<double, kNumReplayMemories> for_good_{};
  std::vector<Event> events_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_MEMORY_LOG_H_
