// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/scenario_problem.h"

#include <vector>

#include "base/status_macros.h"
#include "scenarios/cluster/network.h"
#include "sim/costs/schedule_costs.h"
#include "sim/costs/stage_costs.h"

namespace weir {

absl::StatusOr<OrderProblem> OrderProblemOf(const ResolvedScenario& scenario) {
  OrderProblem problem;
  problem.num_ranks =
      static_cast<int>(scenario.scenario.parallelism().pipeline());
  problem.num_chunks =
      static_cast<int>(scenario.scenario.parallelism().chunks());
  problem.num_microbatches = scenario.num_microbatches;
  const Network network =
      scenario.textbook
          ? Network::Textbook(scenario.placement.num_gpus(),
                              scenario.scenario.textbook().hop_seconds())
          : Network(scenario.cluster);
  const int num_stages = problem.num_stages();
  ASSIGN_OR_RETURN(
      const Costs costs,
      ComputeCosts(scenario, num_stages, std::vector<int>(num_stages, 1)));
  problem.costs = PassCostsOf(scenario, network, costs);
  for (const StageCosts& stage : costs.stages) {
    problem.can_split &= stage.backward_input_seconds >= 0;
  }
  return problem;
}

}  // namespace weir
