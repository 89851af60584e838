// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/scenario_problem.h"

#include <vector>

#include "base/status_macros.h"
#include "scenarios/cluster/network.h"
#include "sim/costs/schedule_costs.h"
#include "sim/costs/stage_costs.h"

namespace weir::plan {

absl::StatusOr<OrderProblem> OrderProblemOf(
    const scenarios::ResolvedScenario& scenario) {
  OrderProblem problem;
  problem.num_ranks =
      static_cast<int>(scenario.scenario.parallelism().pipeline());
  problem.num_chunks =
      static_cast<int>(scenario.scenario.parallelism().chunks());
  problem.num_microbatches = scenario.num_microbatches;
  const scenarios::Network network =
      scenario.given_costs ? scenarios::Network::OfGivenCosts(
                                 scenario.placement.num_gpus(),
                                 scenario.scenario.costs().hop_seconds())
                           : scenarios::Network(scenario.cluster);
  const int num_stages = problem.num_stages();
  ASSIGN_OR_RETURN(
      const sim::Costs costs,
      sim::ComputeCosts(scenario, num_stages, std::vector<int>(num_stages, 1)));
  problem.costs = sim::PassCostsOf(scenario, network, costs);
  for (const sim::StageCosts& stage : costs.stages) {
    problem.can_split &= stage.seconds.backward_parts.has_value();
  }
  return problem;
}

}  // namespace weir::plan
