// SPDX-License-Identifier: Apache-2.0
#include "schedules/systems/pass_placer.h"

#include <algorithm>
#include <limits>

namespace weir::schedules {
namespace {

// Far above the rounding error of a sum of 100,000 terms, far below a pass.
constexpr double kRelativeTolerance = 1e-9;

double LargestHeld(const StagePassCosts& costs) {
  return std::max(costs.activation, costs.weight_gradient_inputs);
}

}  // namespace

PassPlacer::PassPlacer(const ScheduleSpec& spec, const std::vector<int>& route,
                       double memory_limit)
    : costs_(spec.costs),
      route_(route),
      num_microbatches_(spec.num_microbatches),
      ranks_(spec.num_ranks),
      actions_(spec.num_ranks) {
  const size_t num_stages = route.size();
  const size_t num_cells = num_stages * num_microbatches_;
  for (auto& num : num_) num.assign(num_stages, 0);
  for (auto& ends : ends_) ends.assign(num_cells, 0);
  double longest_pass = costs_.hop;
  for (size_t stage = 0; stage < num_stages; ++stage) {
    const StagePassCosts& costs = costs_.of(static_cast<int>(stage));
    const double all =
        costs.forward + costs.backward_input + costs.backward_weight;
    Rank& rank = ranks_[route[stage]];
    rank.stages.push_back(static_cast<int>(stage));
    rank.work += all * num_microbatches_;
    longest_pass = std::max(longest_pass, all);
    largest_ = std::max(largest_, LargestHeld(costs));
  }
  for (int r = 0; r < spec.num_ranks; ++r) {
    const size_t num_passes = ranks_[r].stages.size() * num_microbatches_;
    ranks_[r].inputs.reserve(num_passes);
    actions_[r].reserve(3 * num_passes);
    longest_span_ = std::max(longest_span_, ranks_[r].span());
  }
  tolerance_ = kRelativeTolerance * longest_pass;
  limit_ = memory_limit * largest_ * spec.num_chunks * (1 + 1e-12);
}

double PassPlacer::duration(Op op, int stage) const {
  return costs_.duration({op, stage, 0});
}

double PassPlacer::end(Op op, int stage, int microbatch) const {
  return ends_[op == Op::kForward ? 0 : 1][Cell(stage, microbatch)];
}

double PassPlacer::Arrival(Op op, int stage) const {
  const int before = op == Op::kForward ? stage - 1 : stage + 1;
  if (before < 0 || before == static_cast<int>(route_.size()) ||
      route_[before] == route_[stage]) {
    return -std::numeric_limits<double>::infinity();
  }
  return end(op, before, num(op, stage)) + costs_.hop;
}

bool PassPlacer::CanPut(Op op, int stage) const {
  const int next = num(op, stage);
  if (next == num_microbatches_) return false;
  if (op == Op::kForward) {
    return stage == 0 || num(Op::kForward, stage - 1) > next;
  }
  const bool is_last = stage + 1 == std::ssize(route_);
  return num(Op::kForward, stage) > next &&
         (is_last || num(Op::kBackwardInput, stage + 1) > next);
}

void PassPlacer::Put(Op op, int stage) {
  Rank& rank = ranks_[route_[stage]];
  int& num = num_[static_cast<int>(op)][stage];
  double start = rank.free_at;
  if (op != Op::kBackwardWeight) {
    start = std::max(start, Arrival(op, stage));
    const bool is_first = actions_[route_[stage]].empty();
    if (!is_first) rank.idle += start - rank.free_at;
    longest_span_ = std::max(longest_span_, rank.span());
  }
  rank.free_at = start + duration(op, stage);
  if (op != Op::kBackwardWeight) {
    ends_[op == Op::kForward ? 0 : 1][Cell(stage, num)] = rank.free_at;
  }
  if (op == Op::kBackwardInput) rank.inputs.push_back(stage);
  actions_[route_[stage]].push_back({op, stage, num});
  ++num;
}

void PassPlacer::PutWeight(int rank) {
  Put(Op::kBackwardWeight, ranks_[rank].inputs[ranks_[rank].next_weight++]);
}

double PassPlacer::NextWeightDuration(int rank) const {
  return duration(Op::kBackwardWeight,
                  ranks_[rank].inputs[ranks_[rank].next_weight]);
}

double PassPlacer::Held(int rank) const {
  double held = 0;
  for (int stage : ranks_[rank].stages) {
    const StagePassCosts& costs = costs_.of(stage);
    const int inputs = num(Op::kBackwardInput, stage);
    held += (num(Op::kForward, stage) - inputs) * LargestHeld(costs) +
            (inputs - num(Op::kBackwardWeight, stage)) *
                costs.weight_gradient_inputs;
  }
  return held;
}

bool PassPlacer::HasRoomForForwards(int stage, int num_forwards) const {
  return Held(route_[stage]) + num_forwards * LargestHeld(costs_.of(stage)) <=
         limit_;
}

void PassPlacer::MakeRoomForForward(int stage) {
  const int rank = route_[stage];
  while (HasWeight(rank) && !HasRoomForForwards(stage, 1)) PutWeight(rank);
}

int PassPlacer::WeightsBeforeForward(int stage) const {
  const StagePassCosts& costs = costs_.of(stage);
  const int waiting =
      num(Op::kBackwardInput, stage) - num(Op::kBackwardWeight, stage);
  const double held = Held(route_[stage]) + LargestHeld(costs);
  int count = 0;
  while (count < waiting &&
         held - count * costs.weight_gradient_inputs > limit_) {
    ++count;
  }
  return count;
}

}  // namespace weir::schedules
