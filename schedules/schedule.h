// SPDX-License-Identifier: Apache-2.0
// A schedule as data: the order of each rank's actions, and the weights that
// they read. It contains no seconds, bytes or network. Communication follows
// from it, because a stage's output goes to the rank of the next stage.
#ifndef WEIR_SCHEDULES_SCHEDULE_H_
#define WEIR_SCHEDULES_SCHEDULE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "schedules/action.h"
#include "schedules/pass_costs.h"

namespace weir::schedules {

// The weight versions that passes read. Training starts with version 0. Update
// u of a stage turns version u into version u+1 with the gradients of
// microbatches [u*n, (u+1)*n), n = Schedule::microbatches_per_update(stage),
// immediately after the last of their backwards in the rank's order.
struct WeightPolicy {
  enum class ForwardRead {
    kLatest,         // the stage's newest version when the forward runs
    kDelayed,        // max(u - delay_updates, 0) for a microbatch of update u
    kFirstStage,     // version read by stage 0 for it: vertical sync
    kFirstOfUpdate,  // version read here by the update's first microbatch
  };
  enum class BackwardRead {
    kSameAsForward,  // version read by the microbatch's forward
    kLatest,         // the stage's newest version when it runs
  };
  // When a pass computes with a prediction of other weights than it reads. An
  // elementwise pass over the weights computes the prediction.
  enum class Prediction {
    kNone,
    kForward,               // before every forward
    kForwardAndBackward,    // before every forward and every backward
    kBackward,              // before every backward
    kFirstForwardOfUpdate,  // once per update, for all its passes
  };

  int microbatches_per_update = 1;
  // Replicas of a stage average their gradients: a stage with r replicas
  // updates after r times as many microbatches.
  bool times_replicas = false;
  ForwardRead forward = ForwardRead::kLatest;
  int delay_updates = 0;  // for kDelayed
  BackwardRead backward = BackwardRead::kSameAsForward;

  Prediction prediction = Prediction::kNone;
  // [stage] Distance, in updates, from the version read to the predicted
  // version. Negative: to an older version. Empty: 0 everywhere.
  std::vector<double> forward_distance = {};
  std::vector<double> backward_distance = {};
  // Permanent buffers of the weights' size that the prediction needs (an
  // average of past updates), and copies in the weights' precision with which
  // passes compute.
  int estimate_buffers = 0;
  int predicted_copies = 0;

  bool operator==(const WeightPolicy&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const WeightPolicy& policy) {
    // Names every field, so that a new one does not compile until it is here.
    const auto& [microbatches_per_update, times_replicas, forward,
                 delay_updates, backward, prediction, forward_distance,
                 backward_distance, estimate_buffers, predicted_copies] =
        policy;
    return H::combine(std::move(state), microbatches_per_update, times_replicas,
                      forward, delay_updates, backward, prediction,
                      forward_distance, backward_distance, estimate_buffers,
                      predicted_copies);
  }
};

struct Schedule {
  std::string name;          // registry name, or source file
  int num_ranks = 0;         // pipeline ranks p
  int num_stages = 0;        // interleaved schedules: num_ranks * chunks
  int num_microbatches = 0;  // m, per batch
  int num_batches = 1;
  // True: all microbatches of a batch finish before its update. With
  // num_batches > 1, a rank updates and starts the next batch without waiting
  // for other ranks (post-validation).
  bool flush = true;
  bool forward_only = false;  // inference: no backward, no update
  // routes[route][stage] is the rank that runs the stage for a microbatch of
  // the route. Several routes replicate the weights of a stage that they run on
  // different ranks: bidirectional pipelines, replicated stages.
  std::vector<std::vector<int>> routes;
  // Number of consecutive microbatches that take a route before the next route.
  int microbatches_per_route_turn = 1;
  std::vector<std::vector<Action>> rank_actions;  // [num_ranks], in order
  WeightPolicy weights;
  // Most (stage, microbatch) activations on a rank at a time; forwards and
  // reloads wait for the end of offloads if necessary. 0: no limit.
  int resident_activations = 0;
  bool compressed_transfers = false;  // between ranks, see Communication

  // Returns true if batches with a flush follow each other without a barrier.
  bool overlaps_batches() const { return flush && num_batches > 1; }
  int total_microbatches() const { return num_microbatches * num_batches; }
  int num_routes() const { return static_cast<int>(routes.size()); }
  int route_of(int microbatch) const {
    return microbatch / microbatches_per_route_turn % num_routes();
  }
  int rank_of(int stage, int microbatch) const {
    return routes[routes.size() == 1 ? 0 : route_of(microbatch)][stage];
  }
  // Returns the ranks of a stage, without repeats, in the order of the routes.
  std::vector<int> RanksOf(int stage) const;
  // Returns the stages of a rank, ascending.
  std::vector<int> StagesOf(int rank) const;
  int microbatches_per_update(int stage) const;
};

// Returns equal hashes for schedules that differ at most in their names. Not
// stable across executions of the program.
uint64_t OrderHash(const Schedule& schedule);

// The input of a generator.
struct ScheduleSpec {
  int num_ranks = 1;
  int num_microbatches = 1;
  int num_chunks = 1;   // stages per rank
  int num_batches = 1;  // consecutive batches, for schedules without flush
  std::map<std::string, std::string> options = {};  // see ScheduleKind::options
  PassCosts costs = {};  // for kinds that order by them
};

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SCHEDULE_H_
