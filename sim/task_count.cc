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
  double actions = 0, steps = 0;
  for (int rank = 0; rank < place.pipeline; ++rank) {
    actions += inputs.schedule.rank_actions[rank].size();
    steps += inputs.semantics.update_positions[rank].size();
  }
  // Each action and the transfer of its output, each step.
  double tasks = place.data * place.tensor * (2 * actions + steps);
  if (place.tensor > 1) {
    std::vector<int> group;
    for (int t = 0; t < place.tensor; ++t) group.push_back(place.gpu(0, 0, t));
    tasks += place.data * actions * (2 + RingFlows(inputs.network, group));
  }
  if (place.data > 1) {
    std::vector<int> group;
    for (int r = 0; r < place.data; ++r) group.push_back(place.gpu(r, 0, 0));
    tasks += place.tensor * steps * (2 + RingFlows(inputs.network, group));
  }
  return tasks;
}

}  // namespace weir
