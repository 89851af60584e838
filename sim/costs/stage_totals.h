// SPDX-License-Identifier: Apache-2.0
// Totals of stages, from which lower bounds of layouts follow. A search prices
// the layers once for all of their cuts into stages.
#ifndef WEIR_SIM_COSTS_STAGE_TOTALS_H_
#define WEIR_SIM_COSTS_STAGE_TOTALS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "models/layer_list.h"
#include "scenarios/scenario.h"
#include "sim/costs/stage_costs.h"
#include "sim/costs/stage_parameters.h"

namespace weir::sim {

struct StageTotals {
  // Seconds of the passes of one microbatch without collectives, each on the
  // device where it is least: of forwards, and of forwards and backwards.
  double forward_seconds = 0, seconds = 0;
  // What each replica holds: weights with their copies in other formats,
  // gradients and optimizer states, saved activations of one microbatch.
  double weight_bytes = 0, training_bytes = 0, saved_bytes = 0;
  double optimizer_bytes = 0;  // part of training_bytes: optimizer states

  bool operator==(const StageTotals&) const = default;
};

// Returns the totals of priced stages.
std::vector<StageTotals> TotalsOf(const Costs& costs);

// Returns the bytes of a GPU that are reserved in any case: the least of all
// devices.
double ReservedBytesOf(const Costs& costs);

// Prices of the layers of a scenario, for stages that are sums of layers.
class LayerTotals {
 public:
  // Returns false if the costs of a layer depend on its stage, or those of a
  // stage are not the sum of its layers: measured models, different devices,
  // sharded weights, shards of the vocabulary, packed sequences, recomputation
  // by stage, offloads, adapters, Muon, and launches that block the GPU.
  static bool CanSum(const scenarios::ResolvedScenario& scenario);

  // Requires: CanSum(scenario). Returns the errors of CostsOfDevice.
  static absl::StatusOr<LayerTotals> Of(
      const scenarios::ResolvedScenario& scenario);

  // Equal to TotalsOf(ComputeCosts(scenario, num_stages, versions)) for any
  // numbers of versions, and so are the errors. `scenario` may differ from that
  // of Of() in the pipeline, its layout and the data parallelism, as long as
  // the number of GPUs is the same.
  absl::StatusOr<std::vector<StageTotals>> OfStages(
      const scenarios::ResolvedScenario& scenario, int num_stages) const;

  double reserved_bytes() const { return reserved_bytes_; }

 private:
  struct Seconds {
    double forward = 0, backward_input = 0, backward_weight = 0;
  };

  models::LayerList layers_;
  std::vector<Seconds> seconds_;  // by kind of layer
  ParameterBytes bytes_ = {};
  double reserved_bytes_ = 0;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_STAGE_TOTALS_H_
