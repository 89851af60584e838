// SPDX-License-Identifier: Apache-2.0
#include "schedules/repeat_batch.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weir::schedules {

absl::StatusOr<Schedule> RepeatBatch(const Schedule& batch, int num_batches) {
  const int round = batch.num_routes() * batch.microbatches_per_route_turn;
  if (batch.num_routes() > 1 && batch.num_microbatches % round != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        batch.name, ": has ", batch.num_microbatches, " microbatches on ",
        batch.num_routes(), " routes, expected a multiple of ", round,
        " with post-validation: every batch must take the same routes"));
  }
  Schedule repeated = batch;
  repeated.num_batches = num_batches;
  for (std::vector<Action>& actions : repeated.rank_actions) {
    const size_t length = actions.size();
    actions.reserve(length * num_batches);
    for (int i = 1; i < num_batches; ++i) {
      for (size_t k = 0; k < length; ++k) {
        Action action = actions[k];
        action.microbatch += i * batch.num_microbatches;
        actions.push_back(action);
      }
    }
  }
  return repeated;
}

}  // namespace weir::schedules
