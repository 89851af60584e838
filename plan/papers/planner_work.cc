// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/planner_work.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "models/layer_list.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/network.h"
#include "sim/costs/stage_costs.h"
#include "sim/costs/work_spec.h"

namespace weir::plan {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// The GPUs of a tensor group, represented by one device.
using Group = std::vector<int>;

std::vector<Group> TensorGroups(const scenarios::ResolvedScenario& scenario) {
  const auto& listed = scenario.scenario.parallelism().gpus();
  const int num_gpus =
      listed.empty() ? scenarios::NumGpus(scenario.cluster) : listed.size();
  const int tensor = scenario.placement.tensor;
  std::vector<Group> groups(num_gpus / tensor);
  for (size_t i = 0; i < groups.size() * tensor; ++i) {
    groups[i / tensor].push_back(
        static_cast<int>(listed.empty() ? i : listed[static_cast<int>(i)]));
  }
  return groups;
}

// Every GPU of a group sends to its counterpart in the other concurrently.
double BytesPerSecond(const scenarios::Network& network, const Group& from,
                      const Group& to) {
  std::vector<std::pair<int32_t, int>> flows;  // link, number of flows
  for (size_t i = 0; i < from.size(); ++i) {
    for (int32_t link : network.RouteBetween(from[i], to[i]).links) {
      const auto at =
          std::find_if(flows.begin(), flows.end(),
                       [&](const auto& flow) { return flow.first == link; });
      if (at == flows.end()) {
        flows.emplace_back(link, 1);
      } else {
        ++at->second;
      }
    }
  }
  double slowest = kUnlimited;
  for (const auto& [link, count] : flows) {
    slowest = std::min(slowest, network.links()[link].bytes_per_second / count);
  }
  return slowest;
}

// Returns the seconds that one pass waits for ring collectives through the GPUs
// of a tensor group.
double CollectiveSeconds(
    const std::vector<models::LayerCollective>& collectives, int size,
    double bytes_per_second) {
  double seconds = 0;
  if (size == 1) return seconds;
  for (const models::LayerCollective& collective : collectives) {
    if (collective.group != models::LayerCollective::Group::kTensor) continue;
    const int rounds =
        collective.kind == models::CollectiveKind::kAllReduce ? 2 : 1;
    seconds += collective.count * rounds * (size - 1) * collective.bytes /
               (size * bytes_per_second);
  }
  return seconds;
}

double RingBytesPerSecond(const scenarios::Network& network,
                          const Group& group) {
  double slowest = kUnlimited;
  for (size_t i = 0; i < group.size() && group.size() > 1; ++i) {
    slowest = std::min(
        slowest,
        BytesPerSecond(network, {group[i]}, {group[(i + 1) % group.size()]}));
  }
  return slowest;
}

// Host launches overlap with the GPU; host work per pass belongs to no layer.
double WithHost(double seconds, sim::HostWork host, const Runtime& runtime) {
  host.passes = 0;
  return std::max(seconds, host.Seconds(runtime));
}

PlannerLayer PriceLayer(const models::LayerWork& work,
                        const models::LayerWork& recomputed,
                        const sim::StageCosts& costs, const Runtime& runtime,
                        int tensor, double tensor_bytes_per_second) {
  PlannerLayer layer;
  layer.name = work.name;
  layer.is_block = work.role == models::LayerRole::kBlock ||
                   work.role == models::LayerRole::kMeasured;
  const bool whole = work.role == models::LayerRole::kMeasured;
  layer.forward_seconds =
      WithHost(costs.seconds.forward, costs.launches.forward, runtime) +
      CollectiveSeconds(costs.communication.forward_collectives, tensor,
                        tensor_bytes_per_second);
  layer.backward_seconds =
      whole ? costs.seconds.backward
            : WithHost(costs.seconds.backward_parts->input,
                       costs.launches.backward_input, runtime) +
                  WithHost(costs.seconds.backward_parts->weight,
                           costs.launches.backward_weight, runtime);
  layer.backward_seconds +=
      CollectiveSeconds(costs.communication.backward_collectives, tensor,
                        tensor_bytes_per_second);
  layer.output_bytes = costs.communication.output_bytes;
  layer.activation_bytes = costs.activations.saved_bytes;
  layer.input_bytes = recomputed.stash_bytes;
  layer.parameter_bytes = costs.parameters.weight_bytes;
  layer.gradient_bytes = costs.parameters.gradient_bytes;
  layer.version_bytes = costs.parameters.stash_bytes;
  layer.state_bytes =
      costs.parameters.weight_bytes + costs.parameters.weight_copy_bytes +
      costs.parameters.gradient_bytes + costs.parameters.optimizer_state_bytes;
  return layer;
}

double SecondsOf(const sim::DeviceCosts& device) {
  double seconds = 0;
  for (const sim::StageCosts& layer : device.stages) {
    seconds += layer.seconds.forward + layer.seconds.backward;
  }
  return seconds;
}

std::vector<PlannerDevice> Devices(const scenarios::ResolvedScenario& scenario,
                                   const scenarios::Network& network,
                                   const sim::Costs& costs,
                                   const std::vector<Group>& groups) {
  std::vector<PlannerDevice> devices;
  for (const Group& group : groups) {
    PlannerDevice device;
    device.server = network.NodeOf(group.front());
    device.memory_bytes = kUnlimited;
    device.speed = kUnlimited;
    for (int gpu : group) {
      const int kind =
          scenario.gpu_device.empty() ? 0 : scenario.gpu_device[gpu];
      const sim::DeviceCosts& own =
          kind == 0 ? costs : costs.other_devices[kind - 1];
      device.speed = std::min(device.speed, SecondsOf(costs) / SecondsOf(own));
      device.memory_bytes = std::min(
          device.memory_bytes, own.memory_bytes.value() - own.reserved_bytes -
                                   own.communication_buffer_bytes);
    }
    devices.push_back(device);
  }
  return devices;
}

}  // namespace

PlannerLinks PlannerLinksOf(const scenarios::ResolvedScenario& scenario) {
  const scenarios::Network network(scenario.cluster);
  const std::vector<Group> groups = TensorGroups(scenario);
  PlannerLinks links;
  links.servers_bytes_per_second = links.server_bytes_per_second = kUnlimited;
  for (const Group& from : groups) {
    std::vector<double>& row = links.bytes_per_second.emplace_back();
    for (const Group& to : groups) {
      row.push_back(kUnlimited);
      if (from == to) continue;
      row.back() = BytesPerSecond(network, from, to);
      double& slowest =
          network.NodeOf(from.front()) == network.NodeOf(to.front())
              ? links.server_bytes_per_second
              : links.servers_bytes_per_second;
      slowest = std::min(slowest, row.back());
    }
  }
  return links;
}

absl::StatusOr<PlannerWork> PlannerWorkOf(
    const scenarios::ResolvedScenario& scenario) {
  if (scenario.given_costs) return sim::ComputeLayerCosts(scenario).status();
  return PlannerWorkOf(scenario, PlannerLinksOf(scenario));
}

absl::StatusOr<PlannerWork> PlannerWorkOf(
    const scenarios::ResolvedScenario& scenario, const PlannerLinks& links) {
  ASSIGN_OR_RETURN(const sim::Costs costs, sim::ComputeLayerCosts(scenario));
  models::WorkSpec spec = sim::MakeWorkSpec(scenario);
  spec.vocabulary_shards = 1;
  const auto list = [&] {
    return models::JoinMtpWithHead(models::ListLayers(scenario.model, spec));
  };
  const models::LayerList layers = list();
  spec.recompute = RECOMPUTE_FULL;
  const models::LayerList recomputed = list();
  const scenarios::Network network(scenario.cluster);
  const std::vector<Group> groups = TensorGroups(scenario);
  const double tensor_rate = RingBytesPerSecond(network, groups.front());
  PlannerWork work;
  static_cast<PlannerLinks&>(work) = links;
  for (size_t i = 0; i < layers.size(); ++i) {
    work.layers.push_back(PriceLayer(layers[i], recomputed[i], costs.stages[i],
                                     scenario.runtime,
                                     scenario.placement.tensor, tensor_rate));
  }
  work.devices = Devices(scenario, network, costs, groups);
  const Batch& batch = scenario.scenario.batch();
  work.microbatch_size = static_cast<int>(batch.microbatch_size());
  work.num_microbatches =
      static_cast<int>(batch.global_batch_size() / batch.microbatch_size());
  return work;
}

}  // namespace weir::plan
