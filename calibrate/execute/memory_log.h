// SPDX-License-Identifier: Apache-2.0
// Bytes by class over a step, counted as in the simulator: all events of one
// time are applied before the total is evaluated. Errors are those of the
// device (rank_device.h).
#ifndef WEIR_CALIBRATE_EXECUTE_MEMORY_LOG_H_
#define WEIR_CALIBRATE_EXECUTE_MEMORY_LOG_H_

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "calibrate/execute/execution_record.h"
#include "calibrate/execute/rank_device.h"

namespace weir::calibrate {

class MemoryLog {
 public:
  // Adds memory that exists from before the first step on.
  void AddForGood(MemoryClass::Kind kind, double bytes) {
    for_good_[static_cast<int>(kind)] += bytes;
  }
  // Negative bytes are freed.
  void Add(const RankEventPtr& at, MemoryClass::Kind kind, double bytes) {
    if (bytes != 0) events_.push_back({at, kind, bytes});
  }
  void AddFor(const RankEventPtr& from, const RankEventPtr& to,
              MemoryClass::Kind kind, double bytes) {
    Add(from, kind, bytes);
    Add(to, kind, -bytes);
  }
  void Clear() { events_.clear(); }

  // Computes timeline and peak of the step. Requires: the events have passed.
  absl::Status Resolve(RankDevice* device, RankRecord* record) const;

 private:
  struct Event {
    RankEventPtr at;
    MemoryClass::Kind kind;
    double bytes;
  };
  std::array<double, MemoryClass::Kind_ARRAYSIZE> for_good_{};
  std::vector<Event> events_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_MEMORY_LOG_H_
