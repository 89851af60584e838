// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/starting_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "plan/synthesis/order_problem.h"
#include "schedules/validate.h"

namespace weir::plan {
namespace {

constexpr int kMaxStarts = 3;

// Returns true if a converted order is usable. It may hold more than the named
// one, as whole backwards are split or passes ordered by microbatch.
bool IsStart(const OrderProblem& problem, const schedules::Schedule& schedule) {
  return schedules::ValidateSchedule(schedule).ok() &&
         FitsLimit(problem, schedule);
}

void AddRows(const OrderProblem& problem, const std::string& name,
             PassRows rows, StartingPoint* starting_point) {
  if (std::ssize(starting_point->starts) >= kMaxStarts) return;
  for (const auto& [other, known] : starting_point->starts) {
    if (known.ranks == rows.ranks) return;
  }
  if (!IsStart(problem, starting_point->table.ScheduleOf(rows))) return;
  starting_point->starts.emplace_back(name, std::move(rows));
}

// Returns the number of activations that the limit holds; 0 if it holds all.
int RoomFor(const OrderProblem& problem) {
  double activation = 0;
  for (int stage = 0; stage < problem.num_stages(); ++stage) {
    activation = std::max(activation, problem.costs.of(stage).activation);
  }
  const double room = problem.memory_limit * (1 + kRounding) / activation;
  return room < problem.num_microbatches ? static_cast<int>(room) : 0;
}

}  // namespace

bool HasOffloads(const schedules::Schedule& schedule) {
  for (const std::vector<schedules::Action>& actions : schedule.rank_actions) {
    for (const schedules::Action& action : actions) {
      if (!schedules::IsCompute(action.op)) return true;
    }
  }
  return false;
}

StartingPoint StartingPointOf(const OrderProblem& problem,
                              const std::vector<int>& route,
                              const std::vector<NamedOrder>& named,
                              double enough) {
  PassTable table(problem, route);
  OrderBound bound = LowerBoundOf(table, enough);
  StartingPoint starting_point = {std::move(table), std::move(bound)};
  for (const NamedOrder& order : named) {
    if (order.fits)
      AddStart(problem, order.name, order.schedule, &starting_point);
  }
  AddRows(problem, "one microbatch at a time", starting_point.table.OneByOne(),
          &starting_point);
  return starting_point;
}

void AddStart(const OrderProblem& problem, const std::string& name,
              const schedules::Schedule& schedule,
              StartingPoint* starting_point) {
  if (schedule.routes.empty() ||
      schedule.routes[0] != starting_point->table.route() ||
      HasOffloads(schedule)) {
    return;
  }
  AddRows(problem, name, starting_point->table.RowsOf(schedule),
          starting_point);
}

void AddOffloadStart(const OrderProblem& problem, const std::string& name,
                     const schedules::Schedule& schedule,
                     StartingPoint* starting_point) {
  if (std::ssize(starting_point->offload_starts) >= kMaxStarts ||
      schedule.routes.empty() ||
      schedule.routes[0] != starting_point->table.route()) {
    return;
  }
  std::optional<OffloadRows> rows =
      OffloadRowsOf(starting_point->table, schedule);
  if (!rows.has_value()) return;
  if (rows->resident_activations == 0) {
    rows->resident_activations = RoomFor(problem);
  }
  for (const auto& [other, known] : starting_point->offload_starts) {
    if (known.ranks == rows->ranks) return;
  }
  if (!IsStart(problem, ScheduleOf(starting_point->table, *rows))) return;
  starting_point->offload_starts.emplace_back(name, *std::move(rows));
}

}  // namespace weir::plan
