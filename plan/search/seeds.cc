// SPDX-License-Identifier: Apache-2.0
#include "plan/search/seeds.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "models/layout.h"
#include "scenarios/recomputation.h"
#include "schedules/options.h"
#include "schedules/registry.h"

namespace weir::plan {
namespace {

// Copies the number formats, which are not searched.
void CopyFormats(const Training& from, Training* to) {
  to->set_precision(from.precision());
  to->set_recipe(from.recipe());
  to->clear_quantized_parameters();
  to->clear_first_blocks_in_16_bits();
  to->clear_last_blocks_in_16_bits();
  if (from.has_quantized_parameters())
    to->set_quantized_parameters(from.quantized_parameters());
  if (from.has_first_blocks_in_16_bits())
    to->set_first_blocks_in_16_bits(from.first_blocks_in_16_bits());
  if (from.has_last_blocks_in_16_bits())
    to->set_last_blocks_in_16_bits(from.last_blocks_in_16_bits());
  to->set_first_moment(from.first_moment());
  to->set_second_moment(from.second_moment());
  to->set_main_weights(from.main_weights());
}

Scenario OnBase(const Scenario& base, const Scenario& given) {
  Scenario scenario = base;
  *scenario.mutable_parallelism() = given.parallelism();
  *scenario.mutable_training() = given.training();
  CopyFormats(base.training(), scenario.mutable_training());
  scenario.mutable_batch()->set_microbatch_size(
      given.batch().microbatch_size());
  if (given.communication().gradient_reduction() != REDUCTION_UNSPECIFIED) {
    scenario.mutable_communication()->set_gradient_reduction(
        given.communication().gradient_reduction());
  }
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

// Sets the indices of the seed in the space, if it has one. Other placements
// and cuts are not in the space.
void FindIn(const Space& space, const std::vector<SearchEstimate>& shapes,
            Seed* seed) {
  const Scenario& scenario = seed->plan.scenario();
  if (!scenario.parallelism().gpus().empty()) return;
  Shape own = ShapeOfScenario(scenario);
  const std::vector<int> blocks = std::move(own.blocks);
  own.blocks.clear();
  const bool mtp_apart = own.cut == Cut::kMtpApart;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape& shape = space.shapes[i];
    if (mtp_apart != (shape.cut == Cut::kMtpApart)) continue;
    own.cut = shape.cut;
    own.mtp_modules = shape.mtp_modules;
    if (shapes[i].absent() || shape != own ||
        !std::equal(blocks.begin(), blocks.end(), shapes[i].blocks().begin(),
                    shapes[i].blocks().end())) {
      continue;
    }
    const int schedule =
        IndexOf(space.schedules_of(shape), scenario.schedule());
    if (schedule < 0) continue;
    seed->shape = static_cast<int>(i);
    seed->schedule = schedule;
    return;
  }
}

// Sets the number and the place of MTP modules in a layout.
void SetMtp(const std::string& text, Shape* shape) {
  const auto layout = models::ParseLayout("layout", text);
  if (text.empty() || !layout.ok()) return;
  for (size_t stage = 0; stage < layout->size(); ++stage) {
    const std::string& letters = (*layout)[stage];
    const auto modules = std::count(letters.begin(), letters.end(), 'm');
    if (modules == 0) continue;
    shape->mtp_modules = static_cast<int>(modules);
    if (stage + 1 < layout->size()) shape->cut = Cut::kMtpApart;
  }
}

}  // namespace

Shape ShapeOfScenario(const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  const Training& training = scenario.training();
  const auto one = [](uint32_t count) { return std::max<int>(count, 1); };
  Shape shape;
  shape.tensor = one(parallelism.tensor());
  shape.pipeline = one(parallelism.pipeline());
  shape.data = one(parallelism.data());
  shape.context = one(parallelism.context());
  shape.expert = one(parallelism.expert());
  shape.expert_tensor = static_cast<int>(parallelism.expert_tensor());
  if (shape.expert_tensor == shape.tensor) shape.expert_tensor = 0;
  shape.data_replicate = one(parallelism.data_replicate());
  shape.chunks = one(parallelism.chunks());
  shape.microbatch_size = one(scenario.batch().microbatch_size());
  shape.recompute = scenarios::RecomputeOf(training);
  shape.offloaded_blocks =
      static_cast<int>(training.cpu_offloading_num_layers());
  shape.optimizer_offload = training.optimizer_offload_fraction();
  shape.vocabulary = parallelism.vocabulary_parallel();
  shape.expert_overlap = scenario.communication().overlap_expert_exchange();
  if (scenario.communication().has_tp_comm_overlap()) {
    shape.tensor_overlap = scenario.communication().tp_comm_overlap()
                               ? TensorOverlap::kOn
                               : TensorOverlap::kOff;
  }
  shape.sequence_parallel = parallelism.sequence_parallel();
  shape.sharding = ShardingOf(training);
  shape.reduction = scenario.communication().gradient_reduction();
  shape.order = parallelism.order();
  shape.blocks = GivenBlocks(scenario);
  if (AreEqual(shape.blocks)) {
    shape.blocks.clear();
  } else {
    shape.cut = Cut::kBalanced;
  }
  SetMtp(parallelism.layout(), &shape);
  return shape;
}

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
