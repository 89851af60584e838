// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/memory_log.h"

#include <algorithm>
#include <numeric>

#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

struct Change {
  double seconds;
  MemoryClass::Kind kind;
  double bytes;
};

}  // namespace

absl::Status MemoryLog::Resolve(RankDevice* device, RankRecord* record) const {
  std::vector<Change> changes;
  for (const Event& event : events_) {
    ASSIGN_OR_RETURN(const double seconds, device->SecondsOf(event.at));
    changes.push_back({seconds, event.kind, event.bytes});
  }
  std::stable_sort(
      changes.begin(), changes.end(),
      [](const Change& a, const Change& b) { return a.seconds < b.seconds; });
  auto now = for_good_;
  const auto total = [&] {
    return std::accumulate(now.begin(), now.end(), 0.0);
  };
  record->peak_bytes = total();
  record->peak_by_class = now;
  record->memory = {{0, total()}};
  for (size_t i = 0; i < changes.size(); ++i) {
    now[static_cast<int>(changes[i].kind)] += changes[i].bytes;
    if (i + 1 < changes.size() &&
        changes[i + 1].seconds == changes[i].seconds) {
      continue;
    }
    const double bytes = total();
    if (changes[i].seconds == 0) {
      record->memory[0].bytes = bytes;
    } else {
      record->memory.push_back({changes[i].seconds, bytes});
    }
    if (bytes > record->peak_bytes) {
      record->peak_bytes = bytes;
      record->peak_at_seconds = changes[i].seconds;
      record->peak_by_class = now;
    }
  }
  return absl::OkStatus();
}

}  // namespace weir::calibrate
