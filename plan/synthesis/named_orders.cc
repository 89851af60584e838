// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/named_orders.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schedules/registry.h"
#include "schedules/validate.h"

namespace weir::plan {
namespace {

bool HasOption(const schedules::ScheduleKind& kind, absl::string_view name) {
  return std::any_of(kind.options.begin(), kind.options.end(),
                     [&](const schedules::ScheduleOption& option) {
                       return option.name == name;
                     });
}

// Returns the name of the kind, without and with the memory limit.
std::vector<std::string> VariantsOf(const schedules::ScheduleKind& kind,
                                    const OrderProblem& problem) {
  std::string name(kind.name);
  if (!problem.may_offload && HasOption(kind, "offload")) {
    name += ":offload=never";
  }
  std::vector<std::string> variants = {name};
  if (!HasOption(kind, "memory-limit")) return variants;
  const double microbatches = problem.memory_limit / HeldByMicrobatch(problem);
  if (!std::isfinite(microbatches)) return variants;
  const double whole = std::floor(microbatches * (1 + 1e-12));
  variants.push_back(absl::StrFormat("%s:memory-limit=%.0f", name, whole));
  if (whole != microbatches) {
    variants.push_back(
        absl::StrFormat("%s:memory-limit=%.15g", name, microbatches));
  }
  return variants;
}

bool IsComparable(const OrderProblem& problem,
                  const schedules::Schedule& schedule) {
  if (schedule.routes.size() != 1 || schedule.forward_only ||
      schedule.compressed_transfers || schedule.num_batches != 1 ||
      schedule.num_microbatches != problem.num_microbatches ||
      schedule.num_stages != problem.num_stages()) {
    return false;
  }
  const auto placements = PlacementsOf(problem);
  if (std::find(placements.begin(), placements.end(), schedule.routes[0]) ==
      placements.end()) {
    return false;
  }
  for (const std::vector<schedules::Action>& actions : schedule.rank_actions) {
    for (const schedules::Action& action : actions) {
      if (action.num_microbatches > 1) return false;
      if (!schedules::IsCompute(action.op) && !problem.may_offload)
        return false;
      if (action.op == schedules::Op::kBackwardInput && !problem.can_split)
        return false;
    }
  }
  return schedules::ValidateSchedule(schedule).ok();
}

std::optional<NamedOrder> OrderOf(const std::string& name,
                                  const OrderProblem& problem) {
  const schedules::ScheduleSpec spec = {
      .num_ranks = problem.num_ranks,
      .num_microbatches = problem.num_microbatches,
      .num_chunks = problem.num_chunks,
      .costs = problem.costs};
  absl::StatusOr<schedules::Schedule> schedule =
      schedules::GenerateSchedule(name, spec);
  if (!schedule.ok() || !IsComparable(problem, *schedule)) return {};
  NamedOrder order;
  order.name = name;
  order.schedule = *std::move(schedule);
  order.value = ObjectiveOf(problem, order.schedule);
  const std::vector<double> peaks = PeakHeld(problem, order.schedule);
  order.peak = *std::max_element(peaks.begin(), peaks.end());
  order.fits = FitsLimit(problem, order.schedule);
  return order;
}

}  // namespace

std::vector<NamedOrder> NamedOrders(const OrderProblem& problem) {
  std::vector<NamedOrder> orders;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    if (!kind.flush) continue;
    for (const std::string& name : VariantsOf(kind, problem)) {
      std::optional<NamedOrder> order = OrderOf(name, problem);
      if (order.has_value()) orders.push_back(*std::move(order));
    }
  }
  std::stable_sort(orders.begin(), orders.end(),
                   [](const NamedOrder& one, const NamedOrder& other) {
                     return std::make_tuple(!one.fits, one.value) <
                            std::make_tuple(!other.fits, other.value);
                   });
  return orders;
}

}  // namespace weir::plan
