// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/random_schedule.h"

#include <algorithm>
#include <vector>

#include "schedules/semantics.h"
#include "schedules/validate.h"

namespace weir::sim {
namespace {

// Emits actions in an order that can run: repeatedly a random action whose
// dependencies have been emitted.
class Generator {
 public:
  explicit Generator(RandomSource* source) : source_(*source) {}

  schedules::Schedule Next() {
    schedule_ = {};
    schedule_.name = "random";
    DrawShape();
    DrawPolicy();
    DrawActions();
    Emit();
    return schedule_;
  }

  // Marks random pairs as overlapped where the schedule stays valid.
  void DrawPairs(schedules::Schedule* schedule) {
    for (auto& actions : schedule->rank_actions) {
      for (size_t i = 0; i + 1 < actions.size(); ++i) {
        if (!Chance(2)) continue;
        actions[i].overlaps_next = true;
        if (!schedules::ValidateSchedule(*schedule).ok())
          actions[i].overlaps_next = false;
      }
    }
  }

  bool Chance(int one_in) { return Int(1, one_in) == 1; }

 private:
  struct Item {
    schedules::Action action;
    std::vector<int> dependencies;  // indices of items
    bool done = false;
  };

  int Int(int low, int high) { return source_.Int(low, high); }

  void DrawShape() {
    schedule_.num_ranks = Int(1, 4);
    schedule_.num_stages = Int(1, 6);
    schedule_.num_microbatches = Int(1, 8);
    schedule_.microbatches_per_route_turn = Int(1, 3);
    const int num_routes = Int(1, 3);
    for (int route = 0; route < num_routes; ++route) {
      std::vector<int>& ranks = schedule_.routes.emplace_back();
      for (int s = 0; s < schedule_.num_stages; ++s) {
        ranks.push_back(Int(0, schedule_.num_ranks - 1));
      }
    }
    schedule_.forward_only = Chance(8);
  }

  void DrawPolicy() {
    using Prediction = schedules::WeightPolicy::Prediction;
    schedules::WeightPolicy& weights = schedule_.weights;
    weights.microbatches_per_update = schedule_.num_microbatches;
    if (Chance(2)) {
      weights.prediction = static_cast<Prediction>(Int(0, 4));
      for (int s = 0; s < schedule_.num_stages; ++s) {
        weights.forward_distance.push_back(Int(0, 2));
        weights.backward_distance.push_back(Int(-1, 1));
      }
    }
    schedule_.compressed_transfers = Chance(3);
    if (Chance(3)) {  // several updates
      schedule_.flush = false;
      schedule_.num_batches = Int(1, 3);
      weights.microbatches_per_update = Int(1, schedule_.num_microbatches);
      weights.times_replicas = Chance(2);
    }
    spans_ = schedule_.flush && Chance(2);
    offloads_ = !schedule_.forward_only && Chance(2);
    if (offloads_ && Chance(2)) schedule_.resident_activations = Int(1, 8);
    splits_ = Chance(2);
  }

  // Returns the first microbatch of each span, and the total. All stages
  // process a span in one pass.
  std::vector<int> DrawPieces() {
    std::vector<int> pieces;
    const int turn = schedule_.microbatches_per_route_turn;
    for (int k = 0; k < schedule_.total_microbatches(); ++k) {
      if (k % turn == 0 || !spans_ || Chance(2)) pieces.push_back(k);
    }
    pieces.push_back(schedule_.total_microbatches());
    return pieces;
  }

  int AddItem(schedules::Op op, int stage, int first, int last,
              std::vector<int> dependencies) {
    schedules::Action action = {op, stage, first};
    action.num_microbatches = static_cast<uint16_t>(last - first);
    items_.push_back({action, std::move(dependencies)});
    return static_cast<int>(items_.size()) - 1;
  }

  void DrawActions() {
    items_.clear();
    const int total = schedule_.total_microbatches();
    const int num_stages = schedule_.num_stages;
    // The item that the backward of each microbatch waits for,
    // [stage][microbatch].
    std::vector<std::vector<int>> ready(num_stages, std::vector<int>(total));
    const std::vector<int> forwards = DrawPieces(), backwards = DrawPieces();
    for (size_t piece = 0; piece + 1 < forwards.size(); ++piece) {
      const int first = forwards[piece], last = forwards[piece + 1];
      int before = -1;
      for (int s = 0; s < num_stages; ++s) {
        before =
            AddItem(schedules::Op::kForward, s, first, last,
                    before < 0 ? std::vector<int>{} : std::vector<int>{before});
        int held = before;
        if (offloads_ && Chance(3)) {
          const int away =
              AddItem(schedules::Op::kOffload, s, first, last, {held});
          held = AddItem(schedules::Op::kReload, s, first, last, {away});
        }
        std::fill(ready[s].begin() + first, ready[s].begin() + last, held);
      }
    }
    if (schedule_.forward_only) return;
    for (size_t piece = 0; piece + 1 < backwards.size(); ++piece) {
      const int first = backwards[piece], last = backwards[piece + 1];
      int before = -1;
      for (int s = num_stages - 1; s >= 0; --s) {
        std::vector<int> dependencies(ready[s].begin() + first,
                                      ready[s].begin() + last);
        if (before >= 0) dependencies.push_back(before);
        const bool split = splits_ && Chance(2);
        before = AddItem(
            split ? schedules::Op::kBackwardInput : schedules::Op::kBackward, s,
            first, last, std::move(dependencies));
        if (split)
          AddItem(schedules::Op::kBackwardWeight, s, first, last, {before});
      }
    }
  }

  void Emit() {
    schedule_.rank_actions.assign(schedule_.num_ranks, {});
    for (size_t left = items_.size(); left > 0; --left) {
      std::vector<int> able;
      for (size_t i = 0; i < items_.size(); ++i) {
        const Item& item = items_[i];
        const bool ready = std::all_of(
            item.dependencies.begin(), item.dependencies.end(),
            [&](int dependency) { return items_[dependency].done; });
        if (!item.done && ready) able.push_back(static_cast<int>(i));
      }
      Item& next = items_[able[Int(0, static_cast<int>(able.size()) - 1)]];
      next.done = true;
      const int rank =
          schedule_.rank_of(next.action.stage, next.action.microbatch);
      schedule_.rank_actions[rank].push_back(next.action);
    }
  }

  RandomSource& source_;
  schedules::Schedule schedule_;
  std::vector<Item> items_;
  bool spans_ = false, offloads_ = false, splits_ = false;
};

}  // namespace

schedules::Schedule RandomSchedule(std::mt19937* random) {
  MersenneSource source(random);
  return RandomSchedule(&source);
}

schedules::Schedule RandomSchedule(RandomSource* source) {
  Generator generator(source);
  while (true) {
    schedules::Schedule schedule = generator.Next();
    // Reject: a rank has no stage, updates are out of order, or too few
    // activations may be resident.
    if (!schedules::ValidateSchedule(schedule).ok()) continue;
    if (!schedules::InterpretSchedule(schedule).ok()) continue;
    if (generator.Chance(2)) generator.DrawPairs(&schedule);
    return schedule;
  }
}

}  // namespace weir::sim
