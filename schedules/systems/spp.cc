// SPDX-License-Identifier: Apache-2.0
// SPP (Luo et al., 2022): its execution PE, list scheduling on the stages and
// the links between them.
#include "schedules/limits.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/list_order.h"
#include "schedules/systems/zero_bubble_costs.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kSppName = "spp";

absl::Status CheckSpp(const ScheduleSpec& spec) {
  Problems problems(kSppName);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  CheckCosts(spec, &problems);
  return problems.ToStatus();
}

Schedule GenerateSpp(const ScheduleSpec& spec) {
  std::vector<double> forward, backward;
  for (int stage = 0; stage < spec.num_ranks; ++stage) {
    if (stage > 0) {
      forward.push_back(spec.costs.hop);
      backward.push_back(spec.costs.hop);
    }
    const StagePassCosts& passes = spec.costs.of(stage);
    forward.push_back(passes.forward);
    backward.push_back(passes.fused_backward());
  }
  Schedule schedule = EmptySchedule(kSppName, spec);
  schedule.rank_actions =
      ListOrderOf(forward, backward, spec.num_microbatches).rank_actions;
  return schedule;
}

}  // namespace

ScheduleKind SppKind() {
  return {.name = kSppName,
          .aliases = {"spp-pe"},
          .paper =
              "Luo et al., Efficient Pipeline Planning for Expedited "
              "Distributed DNN Training, INFOCOM 2022",
          .constraints = "chunks is 1, num_batches is 1",
          .summary =
              "list scheduling: a stage runs any pass that is ready, backwards "
              "first; one weight version",
          .flush = true,
          .uses_costs = true,
          .check = CheckSpp,
          .generate = GenerateSpp};
}

}  // namespace weir::schedules
