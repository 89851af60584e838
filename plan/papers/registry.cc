// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/registry.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "plan/papers/bapipe.h"
#include "plan/papers/edgepipe.h"
#include "plan/papers/pipedream.h"
#include "plan/papers/simulable.h"
#include "plan/papers/two_bw.h"

namespace weir::plan {
namespace {

using Planner = decltype(PaperPlanner::plan);

// Wraps a planner that takes the scenario's work as given.
Planner OnWork(absl::StatusOr<PlannedPipeline> plan(const PlannerWork&)) {
  return [plan](const scenarios::ResolvedScenario& given,
                SharedFacts* facts) -> absl::StatusOr<PlannedPipeline> {
    ASSIGN_OR_RETURN(const PlannerWork work,
                     PlannerWorkOf(given, facts->links));
    return plan(work);
  };
}

// Wraps a planner that prices the scenario itself.
Planner OnScenario(absl::StatusOr<PlannedPipeline> plan(
    const scenarios::ResolvedScenario&, const PlannerLinks&)) {
  return [plan](const scenarios::ResolvedScenario& given, SharedFacts* facts) {
    return plan(given, facts->links);
  };
}

absl::StatusOr<PlannedPipeline> Spp(const scenarios::ResolvedScenario& given,
                                    SharedFacts* facts) {
  ASSIGN_OR_RETURN(const PlannerWork work, PlannerWorkOf(given, facts->links));
  return SimulableSpp(work, &facts->spp_order);
}

absl::StatusOr<PlannedPipeline> BaPipe(const scenarios::ResolvedScenario& given,
                                       SharedFacts* facts) {
  ASSIGN_OR_RETURN(const PlannerWork work, PlannerWorkOf(given, facts->links));
  BaPipeOptions options;
  options.blocking_transfers =
      given.scenario.communication().transfers() == BLOCKING;
  return PlanBaPipe(work, options);
}

}  // namespace

const std::vector<PaperPlanner>& PaperPlanners() {
  static const auto* planners = new std::vector<PaperPlanner>{
      {"pipedream",
       "Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN "
       "Training, SOSP 2019",
       "stages and replicas on a hierarchy of machines; minimizes the time of "
       "the slowest stage",
       OnWork(PlanPipeDream)},
      {"pipedream-2bw",
       "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, "
       "ICML 2021",
       "width, depth, microbatch size and recomputation; maximizes throughput",
       OnScenario(PlanTwoBw)},
      {"dapple",
       "Fan et al., DAPPLE: A Pipelined Data Parallel Approach for Training "
       "Large Models, PPoPP 2021",
       "stages, replicas and their servers; minimizes the time of a batch",
       OnWork(SimulableDapple)},
      {"spp",
       "Luo et al., Efficient Pipeline Planning for Expedited Distributed DNN "
       "Training, INFOCOM 2022",
       "order of devices, stages and replicas, with list scheduling", Spp},
      {"bapipe",
       "Zhao et al., BaPipe: Exploration of Balanced Pipeline Parallelism for "
       "DNN Training, 2020",
       "schedule and balanced partition; minimizes the time of a batch",
       BaPipe},
      {"dawnpiper",
       "Peng et al., DawnPiper: A Memory-scalable Pipeline Parallel Training "
       "Framework, 2025",
       "partition that balances time and memory, with recomputation",
       OnScenario(SimulableDawnPiper)},
      {"accept",
       "Chen et al., AccEPT: An Acceleration Scheme for Speeding Up Edge "
       "Pipeline-parallel Training, TMC 2024",
       "order of heterogeneous devices; minimizes the time of a batch",
       OnScenario(SimulableAccept)},
      {"edgepipe",
       "Hu et al., Pipeline Parallelism for Inference on Heterogeneous Edge "
       "Computing, 2021",
       "order of heterogeneous devices; maximizes inference throughput",
       OnWork([](const PlannerWork& work) { return PlanEdgePipe(work); })},
  };
  return *planners;
}

absl::StatusOr<const PaperPlanner*> FindPaperPlanner(absl::string_view name) {
  for (const PaperPlanner& planner : PaperPlanners()) {
    if (planner.name == name) return &planner;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--algorithm: found \"", name, "\", expected one of ",
      absl::StrJoin(PaperPlanners(), ", ",
                    [](std::string* out, const PaperPlanner& planner) {
                      absl::StrAppend(out, planner.name);
                    })));
}

}  // namespace weir::plan
