// SPDX-License-Identifier: Apache-2.0
// A schedule is data: who does what in which order, and which weights are
// read. It knows no seconds, no bytes and no network; communication follows
// from it (a stage's output goes to the rank of the next stage).
#ifndef WEIR_SCHEDULES_SCHEDULE_H_
#define WEIR_SCHEDULES_SCHEDULE_H_

#include <string>
#include <vector>

#include "schedules/action.h"

namespace weir {

// Which weight versions the passes read. Version 0 is what training starts
// with; update u of a stage turns version u into version u+1 with the gradients
// of microbatches [u*microbatches_per_update, (u+1)*microbatches_per_update),
// right after the last of their backwards in the rank's order.
struct WeightPolicy {
  enum class ForwardRead {
    kLatest,   // the newest version of the stage when the forward runs
    kDelayed,  // version max(u - delay_updates, 0) for a microbatch of update u
  };
  enum class BackwardRead {
    kSameAsForward,  // the version that this microbatch's forward read
    kLatest,         // the newest version of the stage when it runs
  };

  int microbatches_per_update = 1;
  ForwardRead forward = ForwardRead::kLatest;
  int delay_updates = 0;  // for kDelayed
  BackwardRead backward = BackwardRead::kSameAsForward;

  bool operator==(const WeightPolicy&) const = default;
};

struct Schedule {
  std::string name;          // registry name, or the file it came from
  int num_ranks = 0;         // pipeline ranks p
  int num_stages = 0;        // num_ranks * chunks for the interleaved ones
  int num_microbatches = 0;  // m of one batch
  int num_batches = 1;       // above 1 only without flush
  // All microbatches drain before the update: a batch starts from scratch.
  bool flush = true;
  std::vector<int> stage_rank;                    // [num_stages]
  std::vector<std::vector<Action>> rank_actions;  // [num_ranks], in order
  WeightPolicy weights;

  int total_microbatches() const { return num_microbatches * num_batches; }
};

// What a generator needs to know.
struct ScheduleSpec {
  int num_ranks = 1;
  int num_microbatches = 1;
  int num_chunks = 1;   // stages per rank
  int num_batches = 1;  // consecutive batches, for schedules without flush
};

}  // namespace weir

#endif  // WEIR_SCHEDULES_SCHEDULE_H_
