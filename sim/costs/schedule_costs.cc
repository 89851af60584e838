// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/schedule_costs.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "models/layer_work.h"
#include "models/recompute.h"
#include "scenarios/costs.h"
#include "scenarios/cuda_graphs.h"
#include "scenarios/recomputation.h"
#include "schedules/action.h"
#include "sim/costs/host_offload.h"

namespace weir::sim {
namespace {

constexpr int kDefaultCompressedBits = 8;

bool Has(const schedules::Schedule& schedule, schedules::Op op) {
  for (const std::vector<schedules::Action>& actions : schedule.rank_actions) {
    for (const schedules::Action& action : actions) {
      if (action.op == op) return true;
    }
  }
  return false;
}

absl::Status CheckSplit(const scenarios::ResolvedScenario& scenario,
                        const schedules::Schedule& schedule,
                        const Costs& costs) {
  for (size_t s = 0; s < costs.stages.size(); ++s) {
    if (costs.stages[s].seconds.backward_parts.has_value()) continue;
    if (!Has(schedule, schedules::Op::kBackwardInput)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        scenario.given_costs
            ? absl::StrCat(scenario.label, ": costs.stages[",
                           scenario.scenario.costs().stages_size() == 1 ? 0 : s,
                           "] has a whole backward (b), but ", schedule.name,
                           " splits it into I and W, expected both "
                           "backward_input_seconds (i) and "
                           "backward_weight_seconds (w)")
            : absl::StrCat(scenario.label, ": model ",
                           scenario.scenario.model(),
                           " was measured with whole backward passes, but ",
                           schedule.name,
                           " splits them into I and W, expected a transformer, "
                           "or another schedule"));
  }
  return absl::OkStatus();
}

absl::Status CheckOffload(const scenarios::ResolvedScenario& scenario,
                          const scenarios::Network& network,
                          const schedules::Schedule& schedule,
                          const Costs& costs) {
  if (!Has(schedule, schedules::Op::kOffload)) return absl::OkStatus();
  for (int i = 0; i < scenario.placement.num_gpus(); ++i) {
    if (costs.of(i, 0).seconds.offload.has_value()) continue;
    const int gpu = scenario.placement.gpus[i];
    if (!network.RouteToHost(gpu).links.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        scenario.label, ": ", schedule.name, " offloads, but GPU ", gpu,
        " has no link to the host, expected pcie in the node of the cluster, "
        "or host_bytes_per_second in the device profile"));
  }
  return absl::OkStatus();
}

// Scatters transfers: each tensor-parallel rank sends its shard of the output,
// and the next stage all-gathers it.
void ScatterTransfers(const scenarios::ResolvedScenario& scenario,
                      const schedules::Schedule& schedule, Costs* costs) {
  const Parallelism& parallelism = scenario.scenario.parallelism();
  const int tensor = scenario.placement.tensor;
  if (!scenario.runtime.scatters_transfers() || tensor == 1 ||
      parallelism.sequence_parallel()) {
    return;
  }
  costs->sent_part = 1.0 / tensor;
  const double launch =
      scenarios::LaunchesWholeSteps(scenario.scenario.training())
          ? 0
          : scenario.runtime.collective_launch_seconds().value();
  for (int s = 0; s + 1 < schedule.num_stages; ++s) {
    if (schedule.rank_of(s, 0) == schedule.rank_of(s + 1, 0)) continue;
    models::LayerCollective gather;
    gather.kind = models::CollectiveKind::kAllGather;
    gather.bytes =
        costs->stages[s].communication.output_bytes * costs->compression;
    costs->stages[s + 1].communication.forward_collectives.push_back(gather);
    costs->stages[s + 1].launches.forward_seconds += launch;
    costs->stages[s].communication.backward_collectives.push_back(gather);
    costs->stages[s].launches.backward_input_seconds += launch;
  }
}

double StreamSeconds(const DeviceProfile& device, double bytes) {
  models::Kernel kernel;
  kernel.bytes = bytes;
  return calibrate::KernelSeconds(device, 1, kernel);
}

// An estimate reads the weights and the averages with which it extrapolates
// (its own buffers, or else the optimizer's states), and writes a copy for the
// passes.
double PredictionSeconds(const DeviceProfile& device,
                         const schedules::Schedule& schedule,
                         const Training& training, const StageCosts& stage) {
  const int states = training.optimizer() == SGD_MOMENTUM ? 1 : 2;
  const int averages = schedule.weights.estimate_buffers > 0
                           ? schedule.weights.estimate_buffers
                           : states;
  return StreamSeconds(device, (1 + averages) * stage.parameters.fp32_bytes +
                                   stage.parameters.weight_bytes);
}

void Price(const DeviceProfile& device, const schedules::Schedule& schedule,
           const Training& training, double compression,
           std::vector<StageCosts>* stages) {
  for (StageCosts& stage : *stages) {
    if (schedule.weights.prediction !=
        schedules::WeightPolicy::Prediction::kNone) {
      stage.seconds.prediction =
          PredictionSeconds(device, schedule, training, stage);
    }
    if (schedule.compressed_transfers) {
      stage.seconds.codec = StreamSeconds(
          device, (1 + compression) * stage.communication.output_bytes);
    }
  }
}

// Returns the time of an uncontended transfer.
double SecondsAlone(const scenarios::Network& network,
                    const scenarios::Route& route, double bytes) {
  double slowest = 0;
  for (int32_t link : route.links) {
    const double rate = network.links()[link].bytes_per_second;
    if (slowest == 0 || rate < slowest) slowest = rate;
  }
  return route.latency_seconds + (slowest > 0 ? bytes / slowest : 0);
}

double LargestHop(const scenarios::ResolvedScenario& scenario,
                  const scenarios::Network& network, const Costs& costs) {
  const scenarios::Placement& place = scenario.placement;
  const int num_stages = static_cast<int>(costs.stages.size());
  double bytes = 0, seconds = 0;
  for (int s = 0; s + 1 < num_stages; ++s) {
    bytes = std::max(bytes, costs.sent_bytes(s));
  }
  // With several stages per rank, the first rank follows the last one.
  const int num_hops = num_stages > place.pipeline && place.pipeline > 1
                           ? place.pipeline
                           : place.pipeline - 1;
  for (int rank = 0; rank < num_hops; ++rank) {
    const scenarios::Route route = network.RouteBetween(
        place.gpu(0, rank, 0), place.gpu(0, (rank + 1) % place.pipeline, 0));
    seconds = std::max(seconds, SecondsAlone(network, route, bytes));
  }
  return seconds;
}

// Returns an error if a stage has too few blocks for what it offloads, or if no
// stage has enough to recompute one. Costs of single layers are not checked.
absl::Status CheckBlocks(const scenarios::ResolvedScenario& scenario,
                         const schedules::Schedule& schedule,
                         const Costs& costs) {
  if (schedule.forward_only ||
      schedule.num_stages != std::ssize(costs.stages)) {
    return absl::OkStatus();
  }
  const Training& training = scenario.scenario.training();
  const auto offloaded = static_cast<int>(training.cpu_offloading_num_layers());
  int most = 0;
  for (size_t s = 0; s < costs.stages.size(); ++s) {
    const int blocks = costs.stages[s].num_blocks;
    most = std::max(most, blocks);
    if (offloaded == 0 || blocks == 0 || offloaded < blocks) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(scenario.label, ": training.cpu_offloading_num_layers is ",
                     offloaded, ", expected at most ", blocks - 1, ": stage ",
                     s, " has ", blocks, blocks == 1 ? " block" : " blocks"));
  }
  const models::Recompute recompute = scenarios::RecomputeOf(training);
  if (recompute.method() == RECOMPUTE_EVERY && most > 0 &&
      recompute.num_layers() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(scenario.label, ": training.recompute_num_layers is ",
                     recompute.num_layers(), ", expected at most ", most,
                     " with the method every: stages have that many blocks"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplySchedule(const scenarios::ResolvedScenario& scenario,
                           const scenarios::Network& network,
                           const schedules::Schedule& schedule, Costs* costs) {
  absl::Status status = CheckSplit(scenario, schedule, *costs);
  if (status.ok()) status = CheckBlocks(scenario, schedule, *costs);
  if (status.ok()) status = CheckOffload(scenario, network, schedule, *costs);
  if (status.ok()) {
    status = ApplyHostOffload(scenario, network, schedule, costs);
  }
  if (!status.ok()) return status;
  ScatterTransfers(scenario, schedule, costs);
  if (schedule.forward_only) {
    costs->model_flops = costs->forward_flops;
    costs->shards = costs->optimizer_shards = costs->shard_replicas = 1;
  }
  if (!schedule.flush && costs->shards * costs->optimizer_shards > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        scenario.label,
        ": training shards optimizer states across data-parallel ranks, but ",
        schedule.name, " has no flush, expected a schedule with a flush"));
  }
  if (costs->shard_replicas > 1 && costs->owned_matrices_per_layer > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        scenario.label, ": parallelism.data_replicate is ",
        costs->shard_replicas, ", expected 1 with runtime ",
        scenario.runtime.name(),
        ", whose ranks own whole matrices (broadcasts_updated_weights)"));
  }
  for (int s = 0; costs->shard_replicas > 1 && s < schedule.num_stages; ++s) {
    if (schedule.RanksOf(s).size() == 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        scenario.label, ": parallelism.data_replicate is ",
        costs->shard_replicas, ", but ", schedule.name,
        " has copies of a stage on several pipeline ranks, expected 1: hybrid "
        "sharding of such copies is not simulated"));
  }
  if (scenario.given_costs) {
    for (StageCosts& stage : costs->stages) {
      if (!schedule.compressed_transfers) stage.seconds.codec = 0;
      if (schedule.weights.prediction ==
          schedules::WeightPolicy::Prediction::kNone) {
        stage.seconds.prediction = 0;
      }
    }
    return absl::OkStatus();
  }
  const Training& training = scenario.scenario.training();
  if (schedule.compressed_transfers) {
    const uint32_t given =
        scenario.scenario.communication().compressed_bits_per_element();
    const double bits = given > 0 ? given : kDefaultCompressedBits;
    costs->compression =
        std::min(bits / (training.precision() == FP32 ? 32 : 16), 1.0);
  }
  Price(scenario.device, schedule, training, costs->compression,
        &costs->stages);
  for (size_t i = 0; i < scenario.other_devices.size(); ++i) {
    Price(scenario.other_devices[i], schedule, training, costs->compression,
          &costs->other_devices[i].stages);
  }
  return absl::OkStatus();
}

schedules::PassCosts PassCostsOf(const scenarios::ResolvedScenario& scenario,
                                 const scenarios::Network& network,
                                 const Costs& costs) {
  if (scenario.given_costs)
    return scenarios::PassCostsOf(scenario.scenario.costs());
  schedules::PassCosts passes;
  const scenarios::Route to_host =
      network.RouteToHost(scenario.placement.gpus[0]);
  for (const StageCosts& stage : costs.stages) {
    schedules::StagePassCosts pass;
    pass.forward = stage.seconds.forward;
    pass.backward = stage.seconds.backward;
    const double half = stage.seconds.backward / 2;
    const BackwardParts parts =
        stage.seconds.backward_parts.value_or(BackwardParts{half, half});
    pass.backward_input = parts.input;
    pass.backward_weight = parts.weight;
    pass.overlapped = stage.seconds.overlapped;
    pass.offload =
        to_host.links.empty()
            ? stage.seconds.offload.value_or(0)
            : SecondsAlone(network, to_host, stage.activations.saved_bytes);
    if (stage.activations.saved_bytes > 0) {
      pass.activation = stage.activations.saved_bytes;
      pass.weight_gradient_inputs =
          stage.activations.weight_gradient_stash_bytes;
    }
    passes.stages.push_back(pass);
  }
  passes.hop = LargestHop(scenario, network, costs);
  return passes;
}

}  // namespace weir::sim
