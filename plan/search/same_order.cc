// SPDX-License-Identifier: Apache-2.0
#include "plan/search/same_order.h"

#include <algorithm>
#include <optional>

#include "plan/search/interleaving.h"
#include "schedules/options.h"
#include "schedules/registry.h"
#include "schedules/source.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

// Returns nullopt if the schedule does not accept the scenario's shape.
std::optional<uint64_t> HashUnder(const std::string& name,
                                  scenarios::ResolvedScenario scenario) {
  if (!schedules::IsScheduleFile(name)) {
    const auto kind = schedules::FindScheduleKind(name);
    if (!kind.ok()) return {};
    schedules::ScheduleSpec spec;
    const Parallelism& parallelism = scenario.scenario.parallelism();
    spec.num_ranks = static_cast<int>(std::max(parallelism.pipeline(), 1u));
    spec.num_chunks = static_cast<int>(std::max(parallelism.chunks(), 1u));
    spec.num_microbatches = scenario.num_microbatches;
    const auto full = schedules::WithOptionsOf(name, **kind, spec);
    if (!full.ok() || !(*kind)->check(*full).ok()) return {};
  }
  scenario.scenario.set_schedule(name);
  const auto schedule = sim::ScheduleOfScenario(scenario, 1);
  if (!schedule.ok()) return {};
  return schedules::OrderHash(*schedule);
}

}  // namespace

std::string FirstNameOfOrder(const scenarios::ResolvedScenario& scenario,
                             const std::vector<PlannedSchedule>& names) {
  const std::string& own = scenario.scenario.schedule();
  const std::optional<uint64_t> hash = HashUnder(own, scenario);
  if (!hash.has_value()) return own;
  for (const PlannedSchedule& other : names) {
    if (other.name == own) return own;
    if (schedules::OrdersByCosts(other.name)) continue;
    if (HashUnder(other.name, scenario) == hash) return other.name;
  }
  return own;
}

bool Executes(const Runtime& runtime,
              const scenarios::ResolvedScenario& scenario) {
  if (runtime.schedules().empty()) return true;
  const Parallelism& parallelism = scenario.scenario.parallelism();
  const int least =
      MinRanksToInterleave(runtime, scenario.scenario.communication());
  if (parallelism.chunks() > 1 &&
      static_cast<int>(std::max(parallelism.pipeline(), 1u)) < least) {
    return false;
  }
  const std::string& own = scenario.scenario.schedule();
  const auto kind = schedules::FindScheduleKind(own);
  const std::optional<uint64_t> hash = HashUnder(own, scenario);
  return std::any_of(runtime.schedules().begin(), runtime.schedules().end(),
                     [&](const std::string& name) {
                       const auto other = schedules::FindScheduleKind(name);
                       if (kind.ok() && other.ok() && *kind == *other)
                         return true;
                       return hash.has_value() &&
                              HashUnder(name, scenario) == hash;
                     });
}

}  // namespace weir::plan
