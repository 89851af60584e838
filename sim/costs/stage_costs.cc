// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/stage_costs.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/profile/device_profile.h"
#include "models/layer_list.h"
#include "models/layer_work.h"
#include "models/partition.h"
#include "models/quantization.h"
#include "models/recompute_work.h"
#include "models/vocabulary_shards.h"
#include "scenarios/cuda_graphs.h"
#include "scenarios/stage_cut.h"
#include "sim/costs/device_costs.h"
#include "sim/costs/given_costs.h"
#include "sim/costs/host_offload.h"
#include "sim/costs/muon.h"
#include "sim/costs/optimizer_step.h"
#include "sim/costs/program_memory.h"
#include "sim/costs/shard_copies.h"
#include "sim/costs/stage_layers.h"
#include "sim/costs/stage_parameters.h"
#include "sim/costs/work_spec.h"

namespace weir::sim {
namespace {

constexpr double kDefaultBucketBytes = 25.0 * (1 << 20);

void SetHostSeconds(const Runtime& runtime, StageCosts* stage) {
  StageLaunches& launches = stage->launches;
  launches.forward_seconds = launches.forward.Seconds(runtime);
  launches.backward_input_seconds = launches.backward_input.Seconds(runtime);
  launches.backward_weight_seconds = launches.backward_weight.Seconds(runtime);
  if (!runtime.blocking_launches()) return;
  stage->seconds.forward += launches.forward_seconds;
  auto& parts = stage->seconds.backward_parts;
  if (!parts.has_value()) return;  // measured: includes the host
  parts->input += launches.backward_input_seconds;
  parts->weight += launches.backward_weight_seconds;
}

// Returns the time of one way between device and host, without PCIe in the
// cluster, or std::nullopt if it is not known.
std::optional<double> OffloadSeconds(const DeviceProfile& device,
                                     double bytes) {
  if (!device.has_host_bytes_per_second()) return std::nullopt;
  return bytes / device.host_bytes_per_second().value();
}

// Returns the size of the buckets in which gradients are reduced.
double BucketBytes(const scenarios::ResolvedScenario& resolved) {
  const Scenario& scenario = resolved.scenario;
  const Runtime& runtime = resolved.runtime;
  const double bytes = scenario.communication().bucket_bytes();
  if (bytes > 0) return bytes;
  const double elements =
      std::max(runtime.bucket_elements(),
               runtime.bucket_elements_per_replica() * resolved.placement.data);
  return elements > 0 ? elements * GradientBytes(scenario.training())
                      : kDefaultBucketBytes;
}

// Sets the gradient bytes of an embedding that the first and another stage
// share.
void SetTiedGradient(const models::LayerList& layers,
                     const models::Partition& partition,
                     const Training& training, Costs* costs) {
  if (training.lora().rank() > 0) return;  // frozen
  for (size_t s = partition.first.size() - 1; s-- > 1;) {
    double shared = 0;
    for (int l = partition.first[s]; l < partition.first[s + 1]; ++l) {
      shared = std::max(shared, layers[l].shared_parameters);
    }
    if (shared == 0) continue;
    costs->tied_gradient_bytes = shared * GradientBytes(training);
    costs->tied_stage = static_cast<int>(s);
    return;
  }
}

// Returns the number of an earlier stage with the same layers and versions,
// whose costs are the same; -1 if there is none. Stages without layers also
// depend on their position.
int EqualStage(const models::LayerList& layers,
               const models::Partition& partition,
               const std::vector<int>& num_versions, size_t stage) {
  const int first = partition.first[stage], last = partition.first[stage + 1];
  for (size_t other = stage; first < last && other-- > 0;) {
    const int start = partition.first[other];
    if (partition.first[other + 1] - start != last - first ||
        num_versions[other] != num_versions[stage]) {
      continue;
    }
    int same = 0;
    while (same < last - first &&
           layers.kind_of(start + same) == layers.kind_of(first + same)) {
      ++same;
    }
    if (same == last - first) return static_cast<int>(other);
  }
  return -1;
}

// Returns the costs of the stages on one kind of GPU.
absl::StatusOr<DeviceCosts> CostsOn(
    const DeviceProfile& device, const Runtime& runtime, const Recipe& recipe,
    const models::Quantization& formats, const Scenario& scenario,
    const models::LayerList& layers, const models::Partition& partition,
    const std::vector<int>& num_versions, const Costs& shared,
    const scenarios::Placement& placement, bool plain_links) {
  ASSIGN_OR_RETURN(DeviceCosts costs,
                   CostsOfDevice(device, runtime, recipe, scenario,
                                 placement.num_gpus(), plain_links));
  const ParameterBytes bytes =
      BytesPerParameter(scenario.training(), recipe, formats);
  const bool measured = layers.front().role == models::LayerRole::kMeasured;
  LayerPrices prices(device, costs);
  for (size_t s = 0; s + 1 < partition.first.size(); ++s) {
    const int first = partition.first[s], last = partition.first[s + 1];
    if (const int equal = EqualStage(layers, partition, num_versions, s);
        equal >= 0) {
      costs.stages.push_back(costs.stages[equal]);
      continue;
    }
    StageCosts stage;
    // A stage without layers passes its input on.
    if (s > 0) {
      stage.communication.output_bytes =
          costs.stages.back().communication.output_bytes;
    }
    if (!measured) {
      stage.seconds.backward_parts.emplace();
      stage.kernels.emplace();
      stage.launches.forward.passes = stage.launches.backward_input.passes = 1;
    }
    AddLayers(layers, first, last, &prices, &stage);
    const Training& training = scenario.training();
    // Whether several ranks shard each expert.
    const bool gathers_experts =
        shared.shards == 1 || shared.expert_shards() > 1;
    SetParameters(layers, first, last, training, bytes, gathers_experts,
                  &stage);
    if (KeepsLowPrecisionGradients(runtime, training)) {
      stage.parameters.kept_gradient_bytes = stage.parameters.written_bytes();
    }
    if (shared.shards > 1 && runtime.copies_gathered_weights()) {
      AddShardCopies(device, costs.prices, shared.shard_calls, &stage);
    }
    if (scenarios::LaunchesWholeSteps(training)) stage.launches = {};
    SetHostSeconds(runtime, &stage);
    if (shared.shards > 1) AddListSeconds(shared.shard_calls, &stage);
    if (const auto& parts = stage.seconds.backward_parts; parts.has_value()) {
      stage.seconds.backward = parts->input + parts->weight;
    }
    stage.seconds.offload =
        OffloadSeconds(device, stage.activations.saved_bytes);
    OffloadActivations(
        layers, first, last,
        static_cast<int>(scenario.training().cpu_offloading_num_layers()),
        &prices, &stage);
    const double step_bytes =
        OptimizerStepBytes(stage.parameters, scenario.training(), runtime,
                           num_versions[s]) *
        shared.stepped_part(stage);
    const double on_host = scenario.training().optimizer_offload_fraction();
    models::Kernel step;
    step.part = models::KernelPart::kOptimizer;
    step.bytes = step_bytes * (1 - on_host) + stage.parameters.cast_bytes;
    stage.step.kernel = {step, 1, costs.prices.Price(device, 1, step).seconds};
    stage.step.buffers = StepBuffersOf(
        layers, first, last, scenario.training(), runtime, placement.data,
        shared.stepped_part(stage), stage.parameters);
    stage.step.update_seconds = runtime.update_seconds().value();
    stage.step.seconds = stage.step.kernel->seconds + stage.step.update_seconds;
    if (UsesMuon(training)) {
      const Orthogonalization updates = OrthogonalizationOf(
          layers, first, last, training, shared.stepped_part(stage), device,
          costs.prices, *costs.peak_flops);
      stage.step.orthogonalization_seconds = updates.seconds;
      stage.step.seconds += updates.seconds;
      stage.step.buffers.bytes += updates.scratch_bytes;
    }
    OffloadOptimizer(on_host, shared.stepped_part(stage), step_bytes, &stage);
    costs.stages.push_back(stage);
  }
  return costs;
}

ContextGroups ContextGroupsOf(const models::ContextSpec& context) {
  return context.method == CONTEXT_ALL_GATHER
             ? ContextGroups{context.ring, 1}
             : ContextGroups{context.heads_parallel, context.ring};
}

// Returns the costs of `partition` for a scenario with a model.
absl::StatusOr<Costs> CostsOfCut(const scenarios::ResolvedScenario& resolved,
                                 const models::LayerList& layers,
                                 const models::Partition& partition,
                                 const std::vector<int>& num_versions) {
  const Scenario& scenario = resolved.scenario;
  Costs costs;
  SetShards(resolved, &costs);
  const bool plain_links = resolved.cluster.plain_links();
  if (resolved.device.has_collectives() && !plain_links) {
    costs.collectives = &resolved.device.collectives();
  }
  if (resolved.device.links_size() > 0 && !plain_links) {
    costs.links = &resolved.device;
  }
  const models::WorkSpec spec = MakeWorkSpec(resolved);
  costs.context = ContextGroupsOf(spec.context);
  costs.widens_gradients =
      WidensGradients(resolved.runtime, scenario.training());
  costs.shards_each_gradient = resolved.runtime.shards_each_gradient();
  costs.frees_gradients = resolved.runtime.frees_gradients();
  costs.allocates_by_stream = resolved.runtime.allocates_by_stream();
  costs.communicator_sizes = CommunicatorSizesOf(resolved);
  if (costs.shards > 1 && resolved.model.has_transformer()) {
    costs.shard_calls = ShardCallsOf(
        resolved.model.transformer(), resolved.runtime,
        scenario.training().recompute() == RECOMPUTE_FULL,
        static_cast<int>(scenario.parallelism().tensor()), costs.shards);
    // A graph launches the copies of a step too.
    if (scenarios::LaunchesWholeSteps(scenario.training())) {
      costs.shard_calls.list_seconds = 0;
    }
  }
  costs.overlaps_step_gather = resolved.runtime.overlaps_step_gather();
  if ((resolved.runtime.broadcasts_updated_weights() ||
       scenario.training().optimizer() == DIST_MUON) &&
      resolved.model.has_transformer()) {
    costs.owned_matrices_per_layer =
        MatricesPerBlock(resolved.model.transformer());
  }
  costs.exchange_seconds = resolved.runtime.exchange_seconds().value();
  costs.bucket_bytes = BucketBytes(resolved);
  const int tensor = static_cast<int>(scenario.parallelism().tensor());
  if (layers.front().role != models::LayerRole::kMeasured) {
    costs.model_flops = models::ModelFlops(layers, tensor);
    costs.forward_flops = models::ForwardFlops(layers, tensor);
  }
  const auto on = [&](const DeviceProfile& device) {
    return CostsOn(device, resolved.runtime, resolved.recipe, spec.quantization,
                   scenario, layers, partition, num_versions, costs,
                   resolved.placement, plain_links);
  };
  ASSIGN_OR_RETURN(static_cast<DeviceCosts&>(costs), on(resolved.device));
  SetTiedGradient(layers, partition, scenario.training(), &costs);
  for (const DeviceProfile& device : resolved.other_devices) {
    ASSIGN_OR_RETURN(costs.other_devices.emplace_back(), on(device));
  }
  if (resolved.other_devices.empty()) return costs;
  for (int gpu : resolved.placement.gpus) {
    costs.gpu_device.push_back(resolved.gpu_device[gpu]);
  }
  return costs;
}

}  // namespace

const char* MatrixFormat(const Scenario& scenario) {
  const Precision precision = scenario.training().precision();
  if (precision == FP32) return "fp32";
  return precision == MIXED_BF16 ? "bf16" : "fp16";
}

absl::StatusOr<Costs> ComputeCosts(const scenarios::ResolvedScenario& resolved,
                                   int num_stages,
                                   const std::vector<int>& num_versions) {
  const Scenario& scenario = resolved.scenario;
  if (resolved.given_costs) {
    const int given = scenario.costs().stages_size();
    if (given != 1 && given != num_stages) {
      return absl::InvalidArgumentError(absl::StrCat(
          resolved.label, ": costs.stages has ", given,
          " entries, expected 1 or one per stage (", num_stages, ")"));
    }
    return GivenCostsOf(scenario, num_stages);
  }

  const models::WorkSpec spec = MakeWorkSpec(resolved);
  models::LayerList layers = models::ListLayers(resolved.model, spec);
  ASSIGN_OR_RETURN(models::Partition partition,
                   scenarios::CutIntoStages(resolved, layers, num_stages));
  layers =
      models::RecomputeStages(std::move(layers), partition, spec.recompute);
  models::ShardVocabulary(resolved.model.transformer(), spec, &layers,
                          &partition);
  return CostsOfCut(resolved, layers, partition, num_versions);
}

absl::StatusOr<Costs> ComputeLayerCosts(
    const scenarios::ResolvedScenario& resolved) {
  if (resolved.given_costs) {
    return absl::InvalidArgumentError(
        absl::StrCat(resolved.label,
                     ": costs are given per stage, expected a model "
                     "whose layers can be partitioned"));
  }
  models::WorkSpec spec = MakeWorkSpec(resolved);
  spec.vocabulary_shards = 1;
  models::LayerList layers =
      models::JoinMtpWithHead(models::ListLayers(resolved.model, spec));
  models::Partition partition;
  for (size_t layer = 0; layer <= layers.size(); ++layer) {
    partition.first.push_back(static_cast<int>(layer));
  }
  layers =
      models::RecomputeStages(std::move(layers), partition, spec.recompute);
  return CostsOfCut(resolved, layers, partition,
                    std::vector<int>(layers.size(), 1));
}

}  // namespace weir::sim
