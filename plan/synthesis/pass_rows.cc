// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/pass_rows.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::plan {

PassTable::PassTable(const OrderProblem& problem, std::vector<int> route)
    : problem_(problem),
      route_(std::move(route)),
      num_microbatches_(problem.num_microbatches) {
  const int num_stages = problem.num_stages();
  const int num_passes = num_stages * num_microbatches_ * 3;
  seconds_.resize(num_passes);
  hop_before_.assign(num_passes, 0);
  tail_.assign(num_passes, 0);
  held_.resize(num_passes);
  before_.assign(num_passes, -1);
  after_.assign(num_passes, -1);
  const auto hop = [&](int stage) {  // to the next stage
    return route_[stage] == route_[stage + 1] ? 0 : problem.costs.hop;
  };
  // The shortest time after the gradient of a stage, and after its forward.
  std::vector<double> input_tail(num_stages), forward_tail(num_stages);
  const auto least_input = [&](int stage) {
    const schedules::StagePassCosts& costs = problem.costs.of(stage);
    return problem.can_split
               ? std::min(costs.backward_input, costs.fused_backward())
               : costs.fused_backward();
  };
  const auto least_backward = [&](int stage) {
    const schedules::StagePassCosts& costs = problem.costs.of(stage);
    return problem.can_split
               ? std::min(costs.backward_input + costs.backward_weight,
                          costs.fused_backward())
               : costs.fused_backward();
  };
  for (int stage = 0; stage < num_stages; ++stage) {
    fused_.push_back(problem.costs.of(stage).fused_backward());
    input_tail[stage] =
        problem.may_fuse(stage) ? 0 : problem.costs.of(stage).backward_weight;
    if (stage == 0) continue;
    input_tail[stage] =
        std::max(input_tail[stage],
                 hop(stage - 1) +
                     std::max(least_input(stage - 1) + input_tail[stage - 1],
                              least_backward(stage - 1)));
  }
  for (int stage = num_stages; stage-- > 0;) {
    forward_tail[stage] =
        std::max(least_input(stage) + input_tail[stage], least_backward(stage));
    if (stage + 1 == num_stages) continue;
    forward_tail[stage] = std::max(
        forward_tail[stage], hop(stage) + problem.costs.of(stage + 1).forward +
                                 forward_tail[stage + 1]);
  }
  for (int stage = 0; stage < num_stages; ++stage) {
    const schedules::StagePassCosts& costs = problem.costs.of(stage);
    for (int k = 0; k < num_microbatches_; ++k) {
      const int32_t f = Number(stage, k, schedules::Op::kForward);
      const int32_t i = Number(stage, k, schedules::Op::kBackwardInput);
      const int32_t w = Number(stage, k, schedules::Op::kBackwardWeight);
      seconds_[f] = costs.forward;
      seconds_[i] = costs.backward_input;
      seconds_[w] = costs.backward_weight;
      held_[f] = costs.activation;
      held_[i] = costs.weight_gradient_inputs - costs.activation;
      held_[w] = -costs.weight_gradient_inputs;
      tail_[f] = forward_tail[stage];
      tail_[i] = input_tail[stage];
      if (stage > 0) {
        before_[f] = Number(stage - 1, k, schedules::Op::kForward);
        hop_before_[f] = hop(stage - 1);
        after_[i] = Number(stage - 1, k, schedules::Op::kBackwardInput);
      }
      if (stage + 1 < num_stages) {
        before_[i] = Number(stage + 1, k, schedules::Op::kBackwardInput);
        hop_before_[i] = hop(stage);
        after_[f] = Number(stage + 1, k, schedules::Op::kForward);
      }
    }
  }
}

PassRows PassTable::RowsOf(const schedules::Schedule& schedule) const {
  PassRows rows;
  rows.ranks.resize(problem_.num_ranks);
  std::vector<std::array<int, 2>> num_run(problem_.num_stages(), {0, 0});
  std::vector<std::vector<int>> waiting(problem_.num_stages());
  std::vector<size_t> num_weights(problem_.num_stages(), 0);
  for (int rank = 0; rank < problem_.num_ranks; ++rank) {
    std::vector<int32_t>& row = rows.ranks[rank];
    for (const schedules::Action& action : schedule.rank_actions[rank]) {
      const int s = action.stage;
      if (action.op == schedules::Op::kForward) {
        row.push_back(Number(s, num_run[s][0]++, schedules::Op::kForward));
      } else if (schedules::MakesInputGradient(action.op)) {
        const int k = num_run[s][1]++;
        row.push_back(Number(s, k, schedules::Op::kBackwardInput));
        if (action.op == schedules::Op::kBackwardInput) {
          waiting[s].push_back(k);
        } else if (!problem_.may_fuse(s)) {
          // A W follows directly. It takes the number of the first waiting one,
          // as any of them may run first.
          waiting[s].push_back(k);
          row.push_back(Number(s, waiting[s][num_weights[s]++],
                               schedules::Op::kBackwardWeight));
        }
      } else if (action.op == schedules::Op::kBackwardWeight) {
        row.push_back(Number(s, waiting[s][num_weights[s]++],
                             schedules::Op::kBackwardWeight));
      }
    }
  }
  return rows;
}

schedules::Schedule PassTable::ScheduleOf(const PassRows& rows) const {
  schedules::Schedule schedule = EmptyOrder(problem_, route_);
  std::vector<bool> has_weight(num_passes() / 3, false);
  for (const std::vector<int32_t>& row : rows.ranks) {
    for (int32_t number : row) {
      if (pass(number) == schedules::Op::kBackwardWeight)
        has_weight[number / 3] = true;
    }
  }
  for (int rank = 0; rank < problem_.num_ranks; ++rank) {
    for (int32_t number : rows.ranks[rank]) {
      schedules::Op op = pass(number);
      if (op == schedules::Op::kBackwardInput && !has_weight[number / 3]) {
        op = schedules::Op::kBackward;
      }
      schedule.rank_actions[rank].push_back(
          {op, stage(number), microbatch(number)});
    }
  }
  return schedule;
}

PassRows PassTable::OneByOne() const {
  PassRows rows;
  rows.ranks.resize(problem_.num_ranks);
  const int num_stages = problem_.num_stages();
  for (int k = 0; k < num_microbatches_; ++k) {
    for (int s = 0; s < num_stages; ++s) {
      rows.ranks[route_[s]].push_back(Number(s, k, schedules::Op::kForward));
    }
    for (int s = num_stages; s-- > 0;) {
      std::vector<int32_t>& row = rows.ranks[route_[s]];
      row.push_back(Number(s, k, schedules::Op::kBackwardInput));
      if (!problem_.may_fuse(s))
        row.push_back(Number(s, k, schedules::Op::kBackwardWeight));
    }
  }
  return rows;
}

}  // namespace weir::plan
