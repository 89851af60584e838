// SPDX-License-Identifier: Apache-2.0
// Orders of events that do not hold, which shows that clocks differ.
#ifndef WEIR_RESULTS_IMPORT_CLOCK_EVIDENCE_H_
#define WEIR_RESULTS_IMPORT_CLOCK_EVIDENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "results/import/event_orders.h"
#include "results/import/recorded_run.h"
#include "results/import/worst_pair.h"

namespace weir::results {

// Orders of one kind that do not hold.
struct Violations : WorstPair {
  int64_t total = 0;  // orders, also those that hold

  void AddOrders(const std::vector<EventOrder>& orders, double allowed_seconds);
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
