// SPDX-License-Identifier: Apache-2.0
// Orders of events that do not hold, which shows that clocks differ.
#ifndef WEIR_RESULTS_IMPORT_CLOCK_EVIDENCE_H_
#define WEIR_RESULTS_IMPORT_CLOCK_EVIDENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "results/import/event_orders.h"
#include "results/import/recorded_run.h"

namespace weir::results {

// Orders of one kind that do not hold, and the one that does so most.
struct Violations {
  int64_t count = 0, total = 0;
  double seconds = 0;
  RecordedOperation first, second;

  void Add(const std::vector<EventOrder>& orders, double allowed_seconds);
};

struct ClockEvidence {
  Violations messages, passes, collectives;

  bool empty() const {
    return messages.count + passes.count + collectives.count == 0;
  }
  // Returns it in words. Messages show more closely what passes show.
  std::string Text(const RecordedRun& run) const;
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_CLOCK_EVIDENCE_H_
