// SPDX-License-Identifier: Apache-2.0
// A run of a FastSimulator, and the estimate that follows from it.
#ifndef WEIR_SIM_FAST_FAST_RUN_H_
#define WEIR_SIM_FAST_FAST_RUN_H_

#include <memory>
#include <optional>

#include "absl/strings/string_view.h"
#include "scenarios/cluster/network.h"
#include "scenarios/scenario.h"
#include "sim/costs/stage_costs.h"
#include "sim/engine/engine.h"
#include "sim/fast/fast_inputs.h"
#include "sim/fast/fast_simulator.h"
#include "sim/fast/steady.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/graph/symmetries.h"
#include "sim/report/window.h"

namespace weir::sim {

// One run of a graph and its inputs.
struct FastRun {
  std::shared_ptr<const scenarios::Network> network;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Prices> prices;  // the costs point into it
  std::shared_ptr<const SymmetryResult> answer;
  Costs costs;
  PipelineGraph graph;
  Recording recording{0};
  std::optional<Steadiness> steadiness;  // only if shortened
  absl::string_view not_extrapolated;    // reason, for a whole run
  Window window;                         // of the whole run
  Window simulated_window;               // if shortened: of the short run
  // At the end of the whole run, not in the short one (short_batches.h).
  int num_batches_left_out = 0;
  bool shared_links = false;

  PipelineInputs InputsOf(const scenarios::ResolvedScenario& scenario) const {
    return {program->schedule(),
            program->semantics,
            costs,
            *network,
            answer->GpusOf(scenario.placement),
            scenario.scenario.communication()};
  }
  bool reduced() const { return answer->symmetry.has_value(); }
  // Returns the tasks of all GPUs; if reduced, an upper bound.
  double num_tasks() const;
  // Returns true if microbatches are a whole number of periods of the times.
  // Requires: joined batches (joined_batches.h).
  bool Repeats(int num_microbatches) const;
  // Makes it the run of a schedule with as many more microbatches, in periods
  // that are left out. Requires: Repeats(num_microbatches).
  void AddLeftOut(int num_microbatches);
};

FastEstimate EstimateOf(const scenarios::ResolvedScenario& scenario,
                        const FastRun& run);

// Sets the means of the parts over the GPUs of each pipeline rank, then over
// the ranks. In a shortened run, passes that were left out count as the mean of
// the others.
void FillParts(const scenarios::ResolvedScenario& scenario, const FastRun& run,
               FastEstimate* estimate);

}  // namespace weir::sim

#endif  // WEIR_SIM_FAST_FAST_RUN_H_
