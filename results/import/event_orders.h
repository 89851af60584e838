// SPDX-License-Identifier: Apache-2.0
// Events of a recorded step that precede others on another worker, whatever
// the clocks say.
#ifndef WEIR_RESULTS_IMPORT_EVENT_ORDERS_H_
#define WEIR_RESULTS_IMPORT_EVENT_ORDERS_H_

#include <vector>

#include "results/import/messages.h"
#include "results/import/recorded_run.h"

namespace weir::results {

struct EventOrder {
  const RecordedOperation* first = nullptr;
  const RecordedOperation* second = nullptr;
  // From the event of `first` to that of `second`; less than 0 only if their
  // clocks differ.
  double slack_seconds = 0;
};

// A gather or reduction over the replicas.
bool IsOverReplicas(RecordedKind kind);

// Starts of sends precede ends of their receives.
std::vector<EventOrder> MessageOrders(const RecordedStep& step,
                                      const OperationGroups& groups);

// Ends of passes precede starts of those of the same microbatch in the next
// stage (of backwards: the previous one), if it is on another worker.
std::vector<EventOrder> PassOrders(const RecordedStep& step);

// The last start of each gather or reduction over the replicas precedes the
// first end. Collectives over pipeline ranks are left out: some runtimes also
// record them on ranks that do not take part.
std::vector<EventOrder> CollectiveOrders(const RecordedStep& step,
                                         const OperationGroups& groups);

// Assumes more of the same collectives, for every two members in both
// directions: they end at the same time, give or take `part` of the shorter
// operation. Starts alone would allow more in one direction than in the other
// if a member waited.
std::vector<EventOrder> CollectiveEndOrders(const RecordedStep& step,
                                            const OperationGroups& groups,
                                            double part);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_EVENT_ORDERS_H_
