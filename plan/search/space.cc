// SPDX-License-Identifier: Apache-2.0
#include "plan/search/space.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "plan/energy/power_cap.h"
#include "plan/energy/power_model.h"
#include "plan/search/interleaving.h"
#include "plan/search/layouts.h"
#include "plan/search/list_recomputes.h"
#include "plan/search/list_shapes.h"
#include "plan/search/schedule_variants.h"
#include "scenarios/cluster/cluster.h"
#include "schedules/options.h"
#include "sim/report/memory_interval.h"

namespace weir::plan {
namespace {

// Sets enough nodes for the largest requested number of GPUs, if not given.
absl::Status CountNodes(const PlanSpace& space, Scenario* scenario) {
  if (scenario->num_nodes() > 0 || space.gpus().empty() ||
      scenario->cluster().empty()) {
    return absl::OkStatus();
  }
  const auto cluster = scenarios::LoadCluster(scenario->cluster(), 0,
                                              scenario->cluster_changes());
  if (!cluster.ok() || cluster->groups_size() != 1) return absl::OkStatus();
  const uint32_t each = cluster->groups(0).node().num_gpus();
  const uint32_t most =
      *std::max_element(space.gpus().begin(), space.gpus().end());
  scenario->set_num_nodes((most + each - 1) / each);
  return absl::OkStatus();
}

// Resolves the scenario as it would run on one GPU.
absl::StatusOr<scenarios::ResolvedScenario> ResolveBase(
    const std::string& label, const PlanRequest& request) {
  Scenario scenario = request.scenario();
  if (scenario.has_costs()) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": costs are given, expected a model and a cluster to plan"));
  }
  const Parallelism given = scenario.parallelism();
  scenario.clear_parallelism();
  scenario.mutable_communication()->clear_overlap_expert_exchange();
  scenario.mutable_parallelism()->set_data(1);
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.set_schedule("1f1b");
  RETURN_IF_ERROR(CountNodes(request.space(), &scenario));
  const uint32_t num_batches = scenario.num_batches();
  scenario.clear_num_batches();
  ASSIGN_OR_RETURN(scenarios::ResolvedScenario base,
                   scenarios::ResolveScenario(label, scenario));
  base.scenario.set_num_batches(num_batches);
  Parallelism& parallelism = *base.scenario.mutable_parallelism();
  parallelism.set_context_method(given.context_method());
  *parallelism.mutable_hierarchical_context() = given.hierarchical_context();
  return base;
}

absl::Status CheckRequest(const std::string& label,
                          const PlanRequest& request) {
  Problems problems(label);
  const PlanSpace& space = request.space();
  for (const std::string& order : space.orders()) {
    if (order != "tp-dp-pp" && order != "tp-pp-dp") {
      problems.Add(
          "space.orders",
          absl::StrCat("has \"", order, "\", expected tp-dp-pp or tp-pp-dp"));
    }
  }
  for (const std::string& sharding : space.sharding()) {
    if (sharding != "none" && sharding != "optimizer" && sharding != "full") {
      problems.Add("space.sharding", absl::StrCat("has \"", sharding,
                                                  "\", expected none, "
                                                  "optimizer or full"));
    }
  }
  const auto positive = [&](const char* field, const auto& list) {
    if (std::count(list.begin(), list.end(), 0u) > 0) {
      problems.Add(absl::StrCat("space.", field), "has 0, expected 1 or more");
    }
  };
  positive("gpus", space.gpus());
  positive("tensor", space.tensor());
  positive("pipeline", space.pipeline());
  positive("data", space.data());
  positive("expert", space.expert());
  positive("expert_tensor", space.expert_tensor());
  positive("data_replicate", space.data_replicate());
  positive("context", space.context());
  positive("chunks", space.chunks());
  positive("microbatch_size", space.microbatch_size());
  for (const double fraction : space.optimizer_offload_fraction()) {
    problems.CheckRange("space.optimizer_offload_fraction", fraction, 0, 1);
  }
  for (const int mode : space.vocabulary_parallel()) {
    if (VocabularyParallel_IsValid(mode)) continue;
    problems.Add("space.vocabulary_parallel",
                 absl::StrCat("has ", mode, ", which is unknown"));
  }
  problems.CheckRange("memory_limit_bytes", request.memory_limit_bytes(), 0,
                      1e18);
  problems.CheckRange("memory_margin", request.memory_margin(), 0, 0.95);
  problems.CheckRange("price_per_gpu_hour", request.price_per_gpu_hour(), 0,
                      1e12);
  if (!Objective_IsValid(request.objective())) {
    problems.Add("objective",
                 absl::StrCat("is ", static_cast<int>(request.objective()),
                              ", expected OBJECTIVE_TIME, OBJECTIVE_MEMORY, "
                              "OBJECTIVE_COST, OBJECTIVE_PARETO or "
                              "OBJECTIVE_ENERGY"));
  }
  if (request.objective() == OBJECTIVE_ENERGY &&
      request.power_model().empty()) {
    problems.Add("power_model",
                 "is missing for the objective energy, expected a preset or "
                 "file with the power of the GPUs (--energy h100-sxm)");
  }
  const double node_cap = request.node_power_cap_watts();
  const double rack_cap = request.rack_power_cap_watts();
  problems.CheckRange("node_power_cap_watts", node_cap, 0, 1e9);
  problems.CheckRange("rack_power_cap_watts", rack_cap, 0, 1e9);
  if ((node_cap > 0 || rack_cap > 0) && request.power_model().empty()) {
    problems.Add("power_model",
                 "is missing for a power cap, expected a preset or file with "
                 "the power of the GPUs (--energy a100-sxm)");
  }
  if (rack_cap > 0 && request.nodes_per_rack() == 0) {
    problems.Add("nodes_per_rack",
                 "is missing for rack_power_cap_watts, expected the nodes of a "
                 "rack (--nodes-per-rack)");
  }
  if (rack_cap == 0 && request.nodes_per_rack() > 0) {
    problems.Add("nodes_per_rack",
                 absl::StrCat("is ", request.nodes_per_rack(),
                              ", which has no effect without "
                              "rack_power_cap_watts, expected it together with "
                              "the most power of a rack (--rack-power-cap)"));
  }
  return problems.ToStatus();
}

// Lowers the clock of all GPUs to the highest within the power caps.
absl::Status ApplyPowerCaps(const std::string& label, PlanRequest request,
                            Space* space) {
  PowerCaps caps;
  caps.node_watts = request.node_power_cap_watts();
  caps.rack_watts = request.rack_power_cap_watts();
  caps.nodes_per_rack = static_cast<int>(request.nodes_per_rack());
  if (caps.node_watts == 0 && caps.rack_watts == 0) return absl::OkStatus();
  int gpus_per_node = 0;
  for (const NodeGroup& group : space->base.cluster.groups()) {
    gpus_per_node =
        std::max(gpus_per_node, static_cast<int>(group.node().num_gpus()));
  }
  ASSIGN_OR_RETURN(CappedClock clock,
                   ClockWithinCaps(request.power_model(), *space->power,
                                   gpus_per_node, caps));
  space->power = std::move(clock.power);
  std::string note = absl::StrFormat("power cap: a node takes at most %.4g W",
                                     clock.node_watts);
  if (clock.speed < 1) {
    SlowPart* slow = request.mutable_scenario()->add_slow();
    slow->set_all_gpus(true);
    slow->set_speed(clock.speed);
    ASSIGN_OR_RETURN(space->base, ResolveBase(label, request));
    absl::StrAppendFormat(&note, ": GPUs compute at %g MHz, %s of their speed",
                          clock.megahertz, FormatPercent(clock.speed));
  } else {
    absl::StrAppend(&note, " at the highest clock");
  }
  space->warnings.push_back(std::move(note));
  return absl::OkStatus();
}

// Refuses sizes of groups that no shape can have: they would have no effect.
absl::Status CheckGroups(const PlanRequest& request, const Space& space) {
  Problems problems(space.base.label);
  const Parallelism& given = request.scenario().parallelism();
  const auto check = [&](const char* field, const auto& listed,
                         uint32_t of_scenario, auto check_one) {
    for (const uint32_t size : listed) {
      check_one(absl::StrCat("space.", field), size);
    }
    if (listed.empty()) {
      check_one(absl::StrCat("parallelism.", field), of_scenario);
    }
  };
  check("data_replicate", request.space().data_replicate(),
        given.data_replicate(), [&](const std::string& field, uint32_t groups) {
          if (groups <= 1) return;
          std::set<int> sizes;  // of layouts that shard something
          bool divides = false;
          for (const Shape& shape : space.shapes) {
            if (shape.sharding == Sharding::kNone) continue;
            sizes.insert(shape.data);
            divides |= shape.data % static_cast<int>(groups) == 0;
          }
          if (divides) return;
          problems.Add(
              field,
              sizes.empty()
                  ? absl::StrCat("is ", groups,
                                 ", expected 1: no layout shards anything over "
                                 "data-parallel ranks (--sharding)")
                  : absl::StrCat("is ", groups,
                                 ", expected a divisor of the data-parallel "
                                 "size of a layout that shards something: ",
                                 absl::StrJoin(sizes, ", ")));
        });
  check("expert_tensor", request.space().expert_tensor(), given.expert_tensor(),
        [&](const std::string& field, uint32_t size) {
          if (size <= 1 || space.base.model.transformer().num_experts() > 0) {
            return;
          }
          problems.Add(field, absl::StrCat("is ", size,
                                           ", expected 1: the model has no "
                                           "experts"));
        });
  return problems.ToStatus();
}

void SetMemoryLimit(const PlanRequest& request, Space* space) {
  double bytes = space->base.device.memory_bytes().value();
  for (const DeviceProfile& other : space->base.other_devices) {
    bytes = std::max(bytes, other.memory_bytes().value());
  }
  const double limit = request.memory_limit_bytes();
  double margin = request.memory_margin();
  // A given limit is the limit, without a margin that was not asked for.
  if (!request.has_memory_margin() && limit == 0) {
    // The interval of the first device represents that of all.
    margin =
        sim::MemoryMargin(space->base, bytes, space->base.placement.num_gpus());
  }
  space->memory_part = 1 - margin;
  bytes *= space->memory_part;
  space->memory_limit_bytes = limit > 0 ? std::min(limit, bytes) : bytes;
}

}  // namespace

Shape Space::At(int index) const {
  const int variant = VariantOf(index);
  const Shape& shape = shapes[ShapeOf(index)];
  if (variant == 0) return shape;
  return WithVariant(shape, variants[variant], NumBlocks(base.model),
                     base.runtime.pipelines_tensor_collectives());
}

bool Space::Has(int shape, int variant) const {
  return Applies(variants[variant], shapes[shape], NumBlocks(base.model));
}

absl::StatusOr<Space> MakeSpace(const std::string& label,
                                const PlanRequest& request) {
  RETURN_IF_ERROR(CheckRequest(label, request));
  Space space;
  ASSIGN_OR_RETURN(space.base, ResolveBase(label, request));
  if (!request.power_model().empty()) {
    ASSIGN_OR_RETURN(space.power, LoadPowerModel(request.power_model()));
    std::set<std::string> devices = {space.base.device.name()};
    for (const DeviceProfile& other : space.base.other_devices) {
      devices.insert(other.name());
    }
    const std::string warning = OtherDevices(*space.power, std::move(devices));
    if (!warning.empty()) {
      space.warnings.push_back(absl::StrCat("--energy: ", warning));
    }
    RETURN_IF_ERROR(ApplyPowerCaps(label, request, &space));
  }
  RETURN_IF_ERROR(CheckGpus(label, request.space(), space.base));
  space.recomputes = RecomputesOf(request.space(), space.base);
  space.variants = VariantsOf(request, space.base);
  space.shapes = ListShapes(request, space.base);
  RETURN_IF_ERROR(CheckGroups(request, space));
  for (const Shape& shape : space.shapes) {
    if (space.schedules.size() <= static_cast<size_t>(shape.pipeline)) {
      space.schedules.resize(shape.pipeline + 1);
    }
    auto& schedules = space.schedules[shape.pipeline];
    if (!schedules.empty()) continue;
    ASSIGN_OR_RETURN(schedules,
                     SchedulesToPlan(label, request.space(), shape.pipeline,
                                     space.base.runtime));
    for (PlannedSchedule& schedule : schedules) {
      const std::string name(schedules::WithoutOptions(schedule.name));
      if (ListsSchedule(space.base.runtime, name)) {
        schedule.min_ranks_to_interleave =
            MinRanksOf(request.space(), space.base);
      }
      auto& names = space.schedule_names;
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  space.schedules_of_runtime = request.space().schedules().empty() &&
                               !request.space().any_runtime() &&
                               !space.base.runtime.schedules().empty();
  SetMemoryLimit(request, &space);
  return space;
}

}  // namespace weir::plan
