// SPDX-License-Identifier: Apache-2.0
// Which operations of a recorded step belong together: a send and its receive,
// and the members of a collective.
#ifndef WEIR_RESULTS_IMPORT_MESSAGES_H_
#define WEIR_RESULTS_IMPORT_MESSAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "results/import/recorded_run.h"

namespace weir::results {

// Gives stage and microbatch to messages that have none: on a worker, the
// messages of a kind serve the passes of their direction in order. Leaves out
// those before the first or after the last pass, and those of the model's ends.
// Returns InvalidArgument if the numbers do not fit.
absl::Status AssignMessages(RecordedRun* run);

// Notes how many sends and receives lack their counterpart. Requires:
// AssignMessages.
void NoteLoneMessages(RecordedRun* run);

// Operations that wait for each other: the transfer of none begins before all
// have started. Members are indices from step.begin.
struct OperationGroups {
  std::vector<std::vector<int32_t>> members;
  std::vector<int32_t> group_of;  // [operation]; -1: alone
};

// - A send and its receive.
// - The n-th weight gather, and gradient reduction, of a pipeline rank: over
//   the replicas.
// - The n-th tied reduction: over the pipeline ranks of a replica.
// - The gradient clip: over all workers.
OperationGroups GroupsOf(const RecordedStep& step);

// Seconds from the last start of the group to the operation's end, at least 0:
// the transfer, without waiting (the paper's transfer-duration). Operations
// that are alone take their own time.
std::vector<double> TransferSeconds(const RecordedStep& step,
                                    const OperationGroups& groups);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_MESSAGES_H_
