// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/synthesis/order_instances.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "base/child_program.h"

namespace weir::plan {

OrderProblem RandomOrderProblem(int num_ranks, int num_microbatches,
                                int num_chunks, std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return static_cast<int>(low + random() % (high - low + 1));
  };
  OrderProblem problem;
  problem.num_ranks = num_ranks;
  problem.num_chunks = num_chunks;
  problem.num_microbatches = num_microbatches;
  double most_held = 0;
  for (int stage = 0; stage < problem.num_stages(); ++stage) {
    schedules::StagePassCosts costs;
    costs.forward = pick(1, 4);
    costs.backward_input = pick(1, 5);
    costs.backward_weight = pick(1, 3);
    costs.activation = pick(1, 3);
    costs.weight_gradient_inputs = pick(0, 3);
    problem.costs.stages.push_back(costs);
    most_held =
        std::max({most_held, costs.activation, costs.weight_gradient_inputs});
  }
  problem.costs.hop = pick(0, 2) * 0.5;
  if (pick(0, 2) > 0) {
    problem.memory_limit =
        most_held * num_chunks * pick(1, std::max(1, num_ranks));
  }
  return problem;
}

namespace {

using Row = std::vector<schedules::Action>;

bool FitsRow(const OrderProblem& problem, const Row& row) {
  double held = 0;
  for (const schedules::Action& action : row) {
    const schedules::StagePassCosts& costs = problem.costs.of(action.stage);
    if (action.op == schedules::Op::kForward) held += costs.activation;
    if (action.op == schedules::Op::kBackwardInput) {
      held += costs.weight_gradient_inputs - costs.activation;
    }
    if (action.op == schedules::Op::kBackwardWeight)
      held -= costs.weight_gradient_inputs;
    if (held > problem.memory_limit) return false;
  }
  return true;
}

// Returns all rows of a rank in which each microbatch of each of its stages
// passes F, I and W in this order.
std::vector<Row> RowsOf(const OrderProblem& problem,
                        const std::vector<int>& stages, Interleavings which) {
  const int m = problem.num_microbatches;
  const size_t total = stages.size() * m * 3;
  std::vector<Row> rows;
  std::vector<int> step(stages.size() * m, 0);
  Row row;
  const std::function<void()> extend = [&] {
    if (row.size() == total) {
      if (FitsRow(problem, row)) rows.push_back(row);
      return;
    }
    for (size_t i = 0; i < step.size(); ++i) {
      const int k = static_cast<int>(i) % m;
      if (step[i] == 3) continue;
      if (which == Interleavings::kInOrder && k > 0 && step[i - 1] <= step[i]) {
        continue;
      }
      constexpr std::array<schedules::Op, 3> kOps = {
          schedules::Op::kForward, schedules::Op::kBackwardInput,
          schedules::Op::kBackwardWeight};
      row.push_back({kOps[step[i]], stages[i / m], k});
      ++step[i];
      extend();
      --step[i];
      row.pop_back();
    }
  };
  extend();
  return rows;
}

// Returns the end of the last action, or infinity for a deadlock. Does not use
// TimedWalk, which is too slow for millions of orders.
double Time(const OrderProblem& problem, const std::vector<int>& route,
            const std::vector<const Row*>& rows) {
  const int m = problem.num_microbatches, s_end = problem.num_stages();
  const int num_passes = s_end * m;
  static thread_local std::vector<double> forward, input;
  forward.assign(num_passes, -1);
  input.assign(num_passes, -1);
  std::array<size_t, 8> next = {};
  std::array<double, 8> free = {}, first = {};
  bool moved = true;
  size_t left = 0;
  for (const Row* row : rows) left += row->size();
  while (left > 0 && moved) {
    moved = false;
    for (size_t rank = 0; rank < rows.size(); ++rank) {
      for (; next[rank] < rows[rank]->size(); ++next[rank]) {
        const schedules::Action& action = (*rows[rank])[next[rank]];
        const int s = action.stage, cell = s * m + action.microbatch;
        const schedules::StagePassCosts& costs = problem.costs.of(s);
        double ready = 0, seconds = costs.backward_weight;
        if (action.op == schedules::Op::kForward) {
          seconds = costs.forward;
          if (s > 0) {
            ready = forward[cell - m];
            if (ready < 0) break;
            ready += route[s - 1] == route[s] ? 0 : problem.costs.hop;
          }
        } else if (action.op == schedules::Op::kBackwardInput) {
          seconds = costs.backward_input;
          if (s + 1 < s_end) {
            ready = input[cell + m];
            if (ready < 0) break;
            ready += route[s + 1] == route[s] ? 0 : problem.costs.hop;
          }
        }
        const double start = std::max(ready, free[rank]);
        if (next[rank] == 0) first[rank] = start;
        free[rank] = start + seconds;
        if (action.op == schedules::Op::kForward) forward[cell] = free[rank];
        if (action.op == schedules::Op::kBackwardInput)
          input[cell] = free[rank];
        moved = true;
        --left;
      }
    }
  }
  if (left > 0) return std::numeric_limits<double>::infinity();
  double value = 0;
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    const bool span = problem.objective == OrderObjective::kSpan;
    value = std::max(value, free[rank] - (span ? first[rank] : 0));
  }
  return value;
}

}  // namespace

double LeastOfAllOrders(const OrderProblem& problem,
                        const std::vector<int>& route, Interleavings which) {
  std::vector<std::vector<Row>> choices;
  for (int rank = 0; rank < problem.num_ranks; ++rank) {
    std::vector<int> stages;
    for (int stage = 0; stage < problem.num_stages(); ++stage) {
      if (route[stage] == rank) stages.push_back(stage);
    }
    choices.push_back(RowsOf(problem, stages, which));
  }
  double least = std::numeric_limits<double>::infinity();
  std::vector<const Row*> rows(problem.num_ranks);
  const std::function<void(int)> choose = [&](int rank) {
    if (rank == problem.num_ranks) {
      least = std::min(least, Time(problem, route, rows));
      return;
    }
    for (const Row& row : choices[rank]) {
      rows[rank] = &row;
      choose(rank + 1);
    }
  };
  choose(0);
  return least;
}

OrderProblem Offloading(const schedules::OffloadProblem& given) {
  OrderProblem problem = {.num_ranks = given.num_ranks,
                          .num_microbatches = given.num_microbatches};
  schedules::StagePassCosts stage;
  stage.forward = given.forward;
  stage.backward_input = given.backward_input;
  stage.backward_weight = given.backward_weight;
  stage.activation = given.activation;
  stage.weight_gradient_inputs = given.weight_gradient_inputs;
  stage.offload = given.offload;
  problem.costs.stages = {stage};
  problem.memory_limit = given.memory;
  problem.may_offload = given.offload > 0;
  return problem;
}

bool HasCbc() { return !FindProgram("cbc").empty(); }

}  // namespace weir::plan
