// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/order_problem.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "schedules/limits.h"
#include "schedules/walk.h"

namespace weir::plan {
namespace {

// Relative error of sums of a few thousand numbers.

double Held(const schedules::StagePassCosts& stage) {
  return std::max(stage.activation, stage.weight_gradient_inputs);
}

// Returns the most that a rank holds with one microbatch at a time: the
// activations of its earlier stages, and the activation or the inputs of W of
// the current one.
double LeastHeld(const OrderProblem& problem, const std::vector<int>& route) {
  double least = 0;
  for (int rank = 0; rank < problem.num_ranks; ++rank) {
    double activations = 0, most = 0;
    for (int stage = 0; stage < problem.num_stages(); ++stage) {
      if (route[stage] != rank) continue;
      const schedules::StagePassCosts& costs = problem.costs.of(stage);
      activations += costs.activation;
      // Gradients return while all earlier stages are held.
      most = std::max(most, activations - costs.activation + Held(costs));
    }
    least = std::max({least, most, activations});
  }
  return least;
}

void CheckStageCosts(const OrderProblem& problem, Problems* problems) {
  for (int stage = 0; stage < static_cast<int>(problem.costs.stages.size());
       ++stage) {
    const schedules::StagePassCosts& costs = problem.costs.stages[stage];
    for (double value :
         {costs.forward, costs.backward_input, costs.backward_weight,
          costs.fused_backward(), costs.offload, costs.activation,
          costs.weight_gradient_inputs}) {
      if (std::isfinite(value) && value >= 0) continue;
      problems->Add(
          absl::StrFormat("costs of stage %d", stage),
          absl::StrFormat("hold %g, expected numbers of 0 or more", value));
      break;
    }
  }
  problems->CheckRange("hop", problem.costs.hop, 0, 1e18);
}

}  // namespace

bool OrderProblem::may_fuse(int stage) const {
  const schedules::StagePassCosts& costs = this->costs.of(stage);
  return !can_split ||
         costs.fused_backward() <
             (costs.backward_input + costs.backward_weight) * (1 - kRounding);
}

double HeldByMicrobatch(const OrderProblem& problem) {
  double largest = 0;
  for (int stage = 0; stage < problem.num_stages(); ++stage) {
    largest = std::max(largest, Held(problem.costs.of(stage)));
  }
  return largest * problem.num_chunks;
}

absl::Status CheckOrderProblem(absl::string_view label,
                               const OrderProblem& problem) {
  Problems problems(label);
  schedules::ScheduleSpec spec = {.num_ranks = problem.num_ranks,
                                  .num_microbatches = problem.num_microbatches,
                                  .num_chunks = problem.num_chunks};
  schedules::CheckLimits(spec, &problems, /*num_passes=*/3);
  const int given = static_cast<int>(problem.costs.stages.size());
  if (given > 1 && given != problem.num_stages()) {
    problems.Add("costs", absl::StrFormat("have %d entries, expected 1 or one "
                                          "per stage (%d)",
                                          given, problem.num_stages()));
  }
  if (problem.may_offload && problem.num_chunks > 1) {
    problems.Add("offload",
                 "is given with several stages per rank, expected 1");
  }
  RETURN_IF_ERROR(problems.ToStatus());
  CheckStageCosts(problem, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<int>& route : PlacementsOf(problem)) {
    least = std::min(least, LeastHeld(problem, route));
  }
  if (problem.memory_limit >= least * (1 - kRounding)) return absl::OkStatus();
  const double unit = HeldByMicrobatch(problem);
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: no order fits in a memory limit of %g microbatches; even one "
      "microbatch at a time needs %g (--memory-limit)",
      label, problem.memory_limit / unit, least / unit));
}

std::vector<std::vector<int>> PlacementsOf(const OrderProblem& problem) {
  std::vector<int> looped, zigzag;
  for (int stage = 0; stage < problem.num_stages(); ++stage) {
    const int chunk = stage / problem.num_ranks;
    const int rank = stage % problem.num_ranks;
    looped.push_back(rank);
    zigzag.push_back(chunk % 2 == 0 ? rank : problem.num_ranks - 1 - rank);
  }
  if (looped == zigzag) return {looped};
  return {looped, zigzag};
}

schedules::Schedule EmptyOrder(const OrderProblem& problem,
                               std::vector<int> route) {
  schedules::Schedule schedule;
  schedule.name = "synthesized";
  schedule.num_ranks = problem.num_ranks;
  schedule.num_stages = problem.num_stages();
  schedule.num_microbatches = problem.num_microbatches;
  schedule.routes = {std::move(route)};
  schedule.weights.microbatches_per_update = problem.num_microbatches;
  schedule.rank_actions.resize(problem.num_ranks);
  return schedule;
}

namespace {

double PeakInOrder(const OrderProblem& problem,
                   const std::vector<schedules::Action>& actions) {
  double held = 0, peak = 0;
  for (const schedules::Action& action : actions) {
    const schedules::StagePassCosts& costs = problem.costs.of(action.stage);
    switch (action.op) {
      case schedules::Op::kForward:
        held += costs.activation;
        break;
      case schedules::Op::kBackwardInput:
        held += costs.weight_gradient_inputs - costs.activation;
        break;
      case schedules::Op::kBackward:
        peak = std::max(peak,
                        held - costs.activation + costs.weight_gradient_inputs);
        held -= costs.activation;
        break;
      case schedules::Op::kBackwardWeight:
        held -= costs.weight_gradient_inputs;
        break;
      case schedules::Op::kOffload:
      case schedules::Op::kReload:
      case WEIR_UNSCHEDULED_OPS:
        break;
    }
    peak = std::max(peak, held);
  }
  return peak;
}

// Memory is taken at the start of a forward or reload and released at the end
// of a pass or offload; simultaneous changes apply together.
double PeakByTime(const OrderProblem& problem,
                  const schedules::WalkTimes& times,
                  const schedules::Schedule& schedule, int rank) {
  std::vector<std::pair<double, double>> changes;  // (time, change)
  const std::vector<schedules::Action>& actions = schedule.rank_actions[rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    const schedules::StagePassCosts& costs = problem.costs.of(actions[i].stage);
    const double start = times.start[rank][i], end = times.end[rank][i];
    switch (actions[i].op) {
      case schedules::Op::kForward:
      case schedules::Op::kReload:
        changes.emplace_back(start, costs.activation);
        break;
      case schedules::Op::kOffload:
        changes.emplace_back(end, -costs.activation);
        break;
      case schedules::Op::kBackwardInput:
        changes.emplace_back(end,
                             costs.weight_gradient_inputs - costs.activation);
        break;
      case schedules::Op::kBackward:
        changes.emplace_back(end, -costs.activation);
        break;
      case schedules::Op::kBackwardWeight:
        changes.emplace_back(end, -costs.weight_gradient_inputs);
        break;
      case WEIR_UNSCHEDULED_OPS:
        break;
    }
  }
  std::sort(changes.begin(), changes.end());
  // Equal times may differ by rounding, as they are summed in different orders.
  const double tolerance = kRounding * times.makespan();
  double held = 0, peak = 0;
  for (size_t i = 0; i < changes.size();) {
    size_t end = i;
    double taken = 0;
    for (; end < changes.size() &&
           changes[end].first <= changes[i].first + tolerance;
         ++end) {
      taken += changes[end].second;
    }
    held += taken;
    peak = std::max(peak, held);
    i = end;
  }
  return peak;
}

}  // namespace

std::vector<double> PeakHeld(const OrderProblem& problem,
                             const schedules::Schedule& schedule) {
  const bool offloads = std::any_of(
      schedule.rank_actions.begin(), schedule.rank_actions.end(),
      [](const std::vector<schedules::Action>& actions) {
        return std::any_of(actions.begin(), actions.end(),
                           [](const schedules::Action& action) {
                             return !schedules::IsCompute(action.op);
                           });
      });
  std::vector<double> peaks;
  schedules::WalkTimes times;
  if (offloads) times = schedules::TimedWalk(schedule, problem.costs);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    peaks.push_back(offloads
                        ? PeakByTime(problem, times, schedule, rank)
                        : PeakInOrder(problem, schedule.rank_actions[rank]));
  }
  return peaks;
}

bool FitsLimit(const OrderProblem& problem,
               const schedules::Schedule& schedule) {
  const std::vector<double> peaks = PeakHeld(problem, schedule);
  return std::all_of(peaks.begin(), peaks.end(), [&](double peak) {
    return peak <= problem.memory_limit * (1 + kRounding);
  });
}

double ObjectiveOf(const OrderProblem& problem,
                   const schedules::Schedule& schedule) {
  const schedules::WalkTimes times =
      schedules::TimedWalk(schedule, problem.costs);
  return problem.objective == OrderObjective::kSpan ? times.span()
                                                    : times.makespan();
}

}  // namespace weir::plan
