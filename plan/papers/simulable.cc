// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/simulable.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "plan/papers/dapple.h"
#include "plan/papers/dawnpiper.h"
#include "plan/papers/layer_sums.h"
#include "plan/papers/spp.h"
#include "scenarios/cluster/network.h"
#include "scenarios/recomputation.h"
#include "schedules/schedule.h"
#include "sim/costs/schedule_costs.h"
#include "sim/costs/stage_costs.h"

namespace weir::plan {
namespace {

bool AreEqual(const PlannedPipeline& plan) {
  return std::all_of(
      plan.stages.begin(), plan.stages.end(), [&](const PlannedStage& stage) {
        return stage.devices.size() == plan.stages[0].devices.size();
      });
}

// Requires: `options` has a field equal_replicas.
template <class Options>
absl::StatusOr<PlannedPipeline> WithEqualReplicas(
    const PlannerWork& work, Options options,
    absl::StatusOr<PlannedPipeline> planner(const PlannerWork&,
                                            const Options&)) {
  std::string note = absl::StrCat(
      "stages with different numbers of replicas are not considered beyond ",
      kMostForUnlike, " devices x layers");
  absl::StatusOr<PlannedPipeline> free = absl::NotFoundError("");
  if (work.devices.size() * work.layers.size() <= kMostForUnlike) {
    free = planner(work, options);
    if (!free.ok() && !absl::IsNotFound(free.status())) return free;
    if (free.ok() && AreEqual(*free) &&
        work.num_microbatches % std::ssize(free->stages[0].devices) == 0) {
      return free;
    }
    note = "stages with different numbers of replicas do not fit";
  }
  options.equal_replicas = true;
  ASSIGN_OR_RETURN(PlannedPipeline equal, planner(work, options));
  if (free.ok()) {
    note = absl::StrCat(
        "stages with different numbers of replicas would take ",
        free->objective_seconds,
        " s by the planner's own model, stages with equal numbers ",
        equal.objective_seconds);
  }
  equal.notes.push_back(note);
  return equal;
}

}  // namespace

absl::StatusOr<PlannedPipeline> SimulableDapple(const PlannerWork& work) {
  return WithEqualReplicas<DappleOptions>(work, {}, PlanDapple);
}

absl::StatusOr<PlannedPipeline> SimulableSpp(const PlannerWork& work,
                                             std::vector<int>* order) {
  RETURN_IF_ERROR(CheckPlannerWork("spp", work));
  if (order->empty()) *order = SppDeviceOrder(work);
  SppOptions options;
  options.order = *order;
  return WithEqualReplicas<SppOptions>(work, options, PlanSpp);
}

absl::StatusOr<PlannedPipeline> SimulableDawnPiper(
    const scenarios::ResolvedScenario& given, const PlannerLinks& links) {
  scenarios::ResolvedScenario scenario = given;
  scenarios::SetRecompute(RECOMPUTE_NONE, scenario.scenario.mutable_training());
  ASSIGN_OR_RETURN(const PlannerWork work, PlannerWorkOf(scenario, links));
  RETURN_IF_ERROR(CheckPlannerWork("dawnpiper", work));
  const int num_devices = static_cast<int>(work.devices.size());
  absl::StatusOr<PlannedPipeline> best =
      absl::NotFoundError(absl::StrCat("dawnpiper: no number of stages fits ",
                                       FormatBytes(LeastMemoryBytes(work))));
  double best_seconds = 0;
  for (int p = 1; p <= num_devices; ++p) {
    const int replicas = num_devices / p;
    if (num_devices % p != 0 || work.num_microbatches % replicas != 0) continue;
    DawnPiperOptions options;
    options.num_stages = p;
    options.recompute = RECOMPUTE_NONE;
    absl::StatusOr<PlannedPipeline> plan = PlanDawnPiper(work, options);
    if (!plan.ok()) {
      options.recompute = RECOMPUTE_FULL;
      plan = PlanDawnPiper(work, options);
    }
    if (!plan.ok()) continue;
    const int num_steps = work.num_microbatches / replicas + p - 1;
    const double seconds = num_steps * plan->objective_seconds;
    if (best.ok() && seconds >= best_seconds) continue;
    best_seconds = seconds;
    best = std::move(plan);
    best->objectives_per_batch = num_steps;
  }
  return best;
}

absl::StatusOr<AcceptOptions> AcceptOptionsOf(
    const scenarios::ResolvedScenario& given) {
  ASSIGN_OR_RETURN(sim::Costs costs, sim::ComputeLayerCosts(given));
  schedules::Schedule schedule;  // only compressed_transfers is used
  schedule.compressed_transfers = true;
  RETURN_IF_ERROR(sim::ApplySchedule(given, scenarios::Network(given.cluster),
                                     schedule, &costs));
  const sim::StageCosts& largest = *std::max_element(
      costs.stages.begin(), costs.stages.end(),
      [](const sim::StageCosts& a, const sim::StageCosts& b) {
        return a.communication.output_bytes < b.communication.output_bytes;
      });
  AcceptOptions options;
  options.compression_ratio = costs.compression;
  if (largest.seconds.codec > 0) {
    options.compress_bytes_per_second = options.decompress_bytes_per_second =
        largest.communication.output_bytes / largest.seconds.codec;
  }
  return options;
}

absl::StatusOr<PlannedPipeline> SimulableAccept(
    const scenarios::ResolvedScenario& given, const PlannerLinks& links) {
  ASSIGN_OR_RETURN(const PlannerWork work, PlannerWorkOf(given, links));
  ASSIGN_OR_RETURN(const AcceptOptions options, AcceptOptionsOf(given));
  return PlanAccept(work, options);
}

}  // namespace weir::plan
