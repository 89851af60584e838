// SPDX-License-Identifier: Apache-2.0
// A schedule is data: who does what in which order, and which weights are
// read. It knows no seconds, no bytes and no network; communication follows
// from it (a stage's output goes to the rank of the next stage).
#ifndef WEIR_SCHEDULES_SCHEDULE_H_
#define WEIR_SCHEDULES_SCHEDULE_H_

#include <map>
#include <string>
#include <vector>

#include "schedules/action.h"
#include "schedules/pass_costs.h"

namespace weir {

// Which weight versions the passes read. Version 0 is what training starts
// with; update u of a stage turns version u into version u+1 with the gradients
// of microbatches [u*n, (u+1)*n), n = Schedule::microbatches_per_update(stage),
// right after the last of their backwards in the rank's order.
struct WeightPolicy {
  enum class ForwardRead {
    kLatest,         // the newest version of the stage when the forward runs
    kDelayed,        // max(u - delay_updates, 0) for a microbatch of update u
    kFirstStage,     // what stage 0 read for this microbatch: vertical sync
    kFirstOfUpdate,  // what the first microbatch of its update read here
  };
  enum class BackwardRead {
    kSameAsForward,  // the version that this microbatch's forward read
    kLatest,         // the newest version of the stage when it runs
  };
  // When a pass computes with an estimate of other weights than it read, made
  // by an elementwise pass over them.
  enum class Prediction {
    kNone,
    kForward,               // before every forward
    kForwardAndBackward,    // before every forward and every backward
    kBackward,              // before every backward
    kFirstForwardOfUpdate,  // once per update, all its passes use it
  };

  int microbatches_per_update = 1;
  // Replicas of a stage average their gradients: a stage with r replicas
  // updates after r times as many microbatches.
  bool times_replicas = false;
  ForwardRead forward = ForwardRead::kLatest;
  int delay_updates = 0;  // for kDelayed
  BackwardRead backward = BackwardRead::kSameAsForward;

  Prediction prediction = Prediction::kNone;
  // [stage], in updates: how far from the version read the estimate aims.
  // Negative: back. Empty: 0 everywhere.
  std::vector<double> forward_distance = {};
  std::vector<double> backward_distance = {};
  // Buffers of the size of the weights that the estimate needs for good (an
  // average of past updates), and copies in the weights' own precision that a
  // pass computes with.
  int estimate_buffers = 0;
  int predicted_copies = 0;

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
  bool forward_only = false;  // inference: no backward, no update
  // routes[route][stage] is the rank on which a microbatch of that route meets
  // the stage. Several routes replicate the weights of a stage that they run on
  // different ranks: bidirectional pipelines, replicated stages.
  std::vector<std::vector<int>> routes;
  // So many consecutive microbatches take one route, then the next begins.
  int microbatches_per_route_turn = 1;
  std::vector<std::vector<Action>> rank_actions;  // [num_ranks], in order
  WeightPolicy weights;
  // Most (stage, microbatch) activations on one rank at a time; forwards and
  // reloads wait for offloads to end where it takes that. 0: no limit.
  int resident_activations = 0;
  bool compressed_transfers = false;  // between ranks, see Communication

  int total_microbatches() const { return num_microbatches * num_batches; }
  int num_routes() const { return static_cast<int>(routes.size()); }
  int route_of(int microbatch) const {
    return microbatch / microbatches_per_route_turn % num_routes();
  }
  int rank_of(int stage, int microbatch) const {
    return routes[routes.size() == 1 ? 0 : route_of(microbatch)][stage];
  }
  // The ranks that hold a stage, each once, in the order of the routes.
  std::vector<int> RanksOf(int stage) const;
  // The stages that a rank holds, ascending.
  std::vector<int> StagesOf(int rank) const;
  int microbatches_per_update(int stage) const;
};

// What a generator needs to know.
struct ScheduleSpec {
  int num_ranks = 1;
  int num_microbatches = 1;
  int num_chunks = 1;   // stages per rank
  int num_batches = 1;  // consecutive batches, for schedules without flush
  std::map<std::string, std::string> options = {};  // see ScheduleKind::options
  PassCosts costs = {};  // for the kinds that order by them
};

}  // namespace weir

#endif  // WEIR_SCHEDULES_SCHEDULE_H_
