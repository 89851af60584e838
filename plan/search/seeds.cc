// SPDX-License-Identifier: Apache-2.0
#include "plan/search/seeds.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "schedules/options.h"
#include "schedules/registry.h"

namespace weir::plan {
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

// Returns the index of the schedule; -1: not found.
int IndexOf(const std::vector<PlannedSchedule>& schedules,
            const std::string& name) {
  const auto kind = schedules::FindScheduleKind(name);
  if (!kind.ok()) return -1;
  const std::string own = schedules::WithOwnName(name, **kind);
  const auto at = std::find_if(
      schedules.begin(), schedules.end(),
      [&](const PlannedSchedule& schedule) { return schedule.name == own; });
  return at == schedules.end() ? -1 : static_cast<int>(at - schedules.begin());
}

Sharding ShardingOf(const Training& training) {
  if (training.fully_sharded()) return Sharding::kFull;
  return training.distributed_optimizer() ? Sharding::kOptimizer
                                          : Sharding::kNone;
}

bool IsShape(const Shape& shape, const SearchEstimate& estimate,
             const Scenario& seed) {
  const Parallelism& parallelism = seed.parallelism();
  const auto one = [](uint32_t count) { return std::max<int>(count, 1); };
  const Training& training = seed.training();
  if (estimate.absent() || shape.sharding != ShardingOf(training) ||
      shape.sequence_parallel != parallelism.sequence_parallel() ||
      shape.reduction != seed.communication().gradient_reduction() ||
      shape.tensor != one(parallelism.tensor()) ||
      shape.pipeline != one(parallelism.pipeline()) ||
      shape.data != one(parallelism.data()) ||
      shape.expert != one(parallelism.expert()) ||
      shape.chunks != one(parallelism.chunks()) ||
      shape.microbatch_size != one(seed.batch().microbatch_size()) ||
      shape.recompute != one(training.recompute()) ||
      shape.order != parallelism.order() || !parallelism.gpus().empty() ||
      !parallelism.layout().empty()) {
    return false;
  }
  const std::vector<int> blocks(parallelism.blocks_per_stage().begin(),
                                parallelism.blocks_per_stage().end());
  if (shape.cut == Cut::kEven) return AreEqual(blocks);
  return std::equal(blocks.begin(), blocks.end(), estimate.blocks().begin(),
                    estimate.blocks().end());
}

void FindIn(const Space& space, const std::vector<SearchEstimate>& shapes,
            Seed* seed) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!IsShape(space.shapes[i], shapes[i], seed->plan.scenario())) continue;
    const int schedule = IndexOf(space.schedules_of(space.shapes[i]),
                                 seed->plan.scenario().schedule());
    if (schedule < 0) continue;
    seed->shape = static_cast<int>(i);
    seed->schedule = schedule;
    return;
  }
}

}  // namespace

std::vector<Seed> SeedsOn(const Space& space,
                          const std::vector<SearchEstimate>& shapes,
                          const std::vector<Plan>& given) {
  std::vector<Seed> seeds;
  std::set<std::string> seen;
  std::set<std::pair<int, int>> in_space;
  for (const Plan& plan : given) {
    Scenario scenario = OnBase(space.base.scenario, plan.scenario());
    if (!seen.insert(scenario.SerializeAsString()).second) continue;
    Seed seed{plan};
    *seed.plan.mutable_scenario() = std::move(scenario);
    FindIn(space, shapes, &seed);
    if (seed.shape >= 0 &&
        !in_space.insert({seed.shape, seed.schedule}).second) {
      continue;
    }
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

}  // namespace weir::plan
