// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "sim/pipeline_graph.h"

namespace weir {
namespace {

// Flows of one collective over these GPUs.
double RingFlows(const Network& network, const std::vector<int>& gpus) {
  double flows = 0;
  for (const Ring& ring : network.RingsOver(gpus)) flows += ring.gpus.size();
  return flows;
}

}  // namespace

double EstimateTasks(const PipelineInputs& inputs) {
  const Placement& place = inputs.placement;
  const Schedule& schedule = inputs.schedule;
  double actions = 0, steps = 0, runs = 0;
  for (int rank = 0; rank < place.pipeline; ++rank) {
    actions += schedule.rank_actions[rank].size();
    steps += inputs.semantics.update_positions[rank].size();
  }
  if (inputs.costs.shards > 1) {
    for (const auto& rank : PlanWeightRuns(schedule)) runs += rank.size();
  }
  // Each action and the transfer of its output, each step.
  double tasks = place.data * place.tensor * (2 * actions + steps);
  if (place.tensor > 1) {
    std::vector<int> group;
    for (int t = 0; t < place.tensor; ++t) group.push_back(place.gpu(0, 0, t));
    tasks += place.data * actions * (2 + RingFlows(inputs.network, group));
  }
  // A stage on several ranks: reduced over all of them at once.
  const std::vector<int> ranks = schedule.RanksOf(0);
  std::vector<int> group;
  for (int rank : ranks) {
    for (int r = 0; r < place.data; ++r) group.push_back(place.gpu(r, rank, 0));
  }
  if (group.size() > 1) {
    tasks += place.tensor * steps / static_cast<double>(ranks.size()) *
             (2 + RingFlows(inputs.network, group));
  }
  if (runs > 0) {
    group.resize(place.data);
    tasks += place.tensor * runs * (2 + RingFlows(inputs.network, group));
  }
  return tasks;
}

}  // namespace weir
