// SPDX-License-Identifier: Apache-2.0
#include "plan/seeds.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "schedules/options.h"
#include "schedules/registry.h"

namespace weir {
namespace {

Scenario OnBase(const Scenario& base, const Scenario& given) {
  Scenario scenario = base;
  *scenario.mutable_parallelism() = given.parallelism();
  *scenario.mutable_training() = given.training();
  scenario.mutable_training()->set_precision(base.training().precision());
  scenario.mutable_batch()->set_microbatch_size(
      given.batch().microbatch_size());
  scenario.set_schedule(given.schedule());
  scenario.set_num_batches(given.num_batches());
  return scenario;
}

bool AreEqual(const std::vector<int>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(),
                     [&](int count) { return count == blocks[0]; });
}

bool HasSchedule(const std::vector<PlannedSchedule>& schedules,
                 const std::string& name) {
  const auto kind = FindScheduleKind(name);
  if (!kind.ok()) return false;
  const std::string own = WithOwnName(name, **kind);
  return std::any_of(
      schedules.begin(), schedules.end(),
      [&](const PlannedSchedule& schedule) { return schedule.name == own; });
}

// With the sharding as given: of others nothing is said.
bool IsShape(const Shape& shape, const SearchFigures& figures,
             const Scenario& seed) {
  const Parallelism& parallelism = seed.parallelism();
  const auto one = [](uint32_t count) { return std::max<int>(count, 1); };
  if (shape.sharding != Sharding::kAsGiven || figures.absent() ||
      shape.tensor != one(parallelism.tensor()) ||
      shape.pipeline != one(parallelism.pipeline()) ||
      shape.data != one(parallelism.data()) ||
      shape.expert != one(parallelism.expert()) ||
      shape.chunks != one(parallelism.chunks()) ||
      shape.microbatch_size != one(seed.batch().microbatch_size()) ||
      shape.recompute != one(seed.training().recompute()) ||
      shape.order != parallelism.order() || !parallelism.gpus().empty() ||
      !parallelism.layout().empty()) {
    return false;
  }
  const std::vector<int> blocks(parallelism.blocks_per_stage().begin(),
                                parallelism.blocks_per_stage().end());
  if (shape.cut == Cut::kEven) return AreEqual(blocks);
  return std::equal(blocks.begin(), blocks.end(), figures.blocks().begin(),
                    figures.blocks().end());
}

bool IsIn(const Space& space, const std::vector<SearchFigures>& shapes,
          const Scenario& seed) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (IsShape(space.shapes[i], shapes[i], seed) &&
        HasSchedule(space.schedules_of(space.shapes[i]), seed.schedule())) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Plan> SeedsOn(const Space& space,
                          const std::vector<SearchFigures>& shapes,
                          const std::vector<Plan>& given) {
  std::vector<Plan> seeds;
  std::set<std::string> seen;
  for (const Plan& plan : given) {
    Scenario scenario = OnBase(space.base.scenario, plan.scenario());
    if (IsIn(space, shapes, scenario) ||
        !seen.insert(scenario.SerializeAsString()).second) {
      continue;
    }
    seeds.push_back(plan);
    *seeds.back().mutable_scenario() = std::move(scenario);
  }
  return seeds;
}

}  // namespace weir
