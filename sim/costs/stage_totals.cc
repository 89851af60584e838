// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/stage_totals.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "models/partition.h"
#include "scenarios/recomputation.h"
#include "scenarios/stage_cut.h"
#include "sim/costs/device_costs.h"
#include "sim/costs/muon.h"
#include "sim/costs/stage_layers.h"
#include "sim/costs/work_spec.h"

namespace weir::sim {
namespace {

void SetBytes(const Costs& costs, const StageCosts& stage,
              StageTotals* totals) {
  const StageParameters& parameters = stage.parameters;
  totals->weight_bytes = costs.sharded_bytes(stage, parameters.weight_bytes) +
                         parameters.weight_copy_bytes;
  totals->optimizer_bytes =
      parameters.optimizer_state_bytes * costs.stepped_part(stage);
  totals->training_bytes =
      costs.sharded_bytes(stage, parameters.gradient_bytes) +
      totals->optimizer_bytes;
}

}  // namespace

std::vector<StageTotals> TotalsOf(const Costs& costs) {
  std::vector<StageTotals> all;
  for (size_t s = 0; s < costs.stages.size(); ++s) {
    StageTotals totals;
    const StageSeconds& seconds = costs.stages[s].seconds;
    totals.forward_seconds = seconds.forward;
    totals.seconds = seconds.forward + seconds.backward;
    for (const DeviceCosts& other : costs.other_devices) {
      const StageSeconds& on_other = other.stages[s].seconds;
      totals.forward_seconds =
          std::min(totals.forward_seconds, on_other.forward);
      totals.seconds =
          std::min(totals.seconds, on_other.forward + on_other.backward);
    }
    SetBytes(costs, costs.stages[s], &totals);
    totals.saved_bytes = costs.stages[s].activations.saved_bytes;
    all.push_back(totals);
  }
  return all;
}

double ReservedBytesOf(const Costs& costs) {
  double reserved = costs.reserved_bytes;
  for (const DeviceCosts& other : costs.other_devices) {
    reserved = std::min(reserved, other.reserved_bytes);
  }
  return reserved;
}

bool LayerTotals::CanSum(const scenarios::ResolvedScenario& resolved) {
  const Scenario& scenario = resolved.scenario;
  const Training& training = scenario.training();
  return !resolved.given_costs && resolved.model.has_transformer() &&
         resolved.other_devices.empty() && !training.fully_sharded() &&
         scenario.parallelism().vocabulary_parallel() ==
             VOCABULARY_PARALLEL_UNSPECIFIED &&
         !scenario.batch().has_packed_sequences() &&
         !scenarios::RecomputeOf(training).by_stage() &&
         training.cpu_offloading_num_layers() == 0 &&
         training.optimizer_offload_fraction() == 0 &&
         training.lora().rank() == 0 && !UsesMuon(training) &&
         !resolved.runtime.blocking_launches();
}

absl::StatusOr<LayerTotals> LayerTotals::Of(
    const scenarios::ResolvedScenario& resolved) {
  const models::WorkSpec spec = MakeWorkSpec(resolved);
  LayerTotals totals;
  totals.layers_ = models::ListLayers(resolved.model, spec);
  ASSIGN_OR_RETURN(
      const DeviceCosts device,
      CostsOfDevice(resolved.device, resolved.runtime, resolved.recipe,
                    resolved.scenario, resolved.placement.num_gpus(),
                    resolved.cluster.plain_links()));
  LayerPrices prices(resolved.device, device);
  const auto num_kinds = static_cast<int32_t>(totals.layers_.num_kinds());
  for (int32_t kind = 0; kind < num_kinds; ++kind) {
    const LayerSeconds& seconds = prices.Of(totals.layers_.kind(kind));
    totals.seconds_.push_back(
        {.forward = seconds.forward,
         .backward_input = seconds.recompute + seconds.backward_input,
         .backward_weight = seconds.backward_weight});
  }
  totals.bytes_ = BytesPerParameter(resolved.scenario.training(),
                                    resolved.recipe, spec.quantization);
  totals.reserved_bytes_ = device.reserved_bytes;
  return totals;
}

absl::StatusOr<std::vector<StageTotals>> LayerTotals::OfStages(
    const scenarios::ResolvedScenario& resolved, int num_stages) const {
  ASSIGN_OR_RETURN(const models::Partition partition,
                   scenarios::CutIntoStages(resolved, layers_, num_stages));
  Costs shards;
  SetShards(resolved, &shards);
  StageCosts stage;  // only its kept bytes
  std::vector<StageTotals> all;
  all.reserve(partition.first.size());
  for (size_t s = 0; s + 1 < partition.first.size(); ++s) {
    const int first = partition.first[s], last = partition.first[s + 1];
    StageTotals totals;
    double input = 0, weight = 0;
    for (int l = first; l < last; ++l) {
      const Seconds& seconds = seconds_[layers_.kind_of(l)];
      totals.forward_seconds += seconds.forward;
      input += seconds.backward_input;
      weight += seconds.backward_weight;
      totals.saved_bytes += layers_[l].stash_bytes;
    }
    totals.seconds = totals.forward_seconds + (input + weight);
    SetKeptBytes(layers_, first, last, resolved.scenario.training(), bytes_,
                 &stage.parameters);
    SetBytes(shards, stage, &totals);
    all.push_back(totals);
  }
  return all;
}

}  // namespace weir::sim
