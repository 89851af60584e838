// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/symmetries.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "sim/graph/replica_groups.h"

namespace weir::sim {
namespace {

std::string SymmetryKey(const scenarios::ResolvedScenario& scenario,
                        const Traffic& traffic) {
  const scenarios::Placement& place = scenario.placement;
  std::string key =
      absl::StrCat(NetworkKey(scenario), "\n", place.tensor, " ", place.data,
                   " ", place.pipeline, " ", traffic.expert_parallel, " ",
                   traffic.expert_tensor, " ", traffic.shard_replicas, " ",
                   traffic.context_neighbors, " ", traffic.context_ring, " ",
                   traffic.slows_passes, traffic.models_collectives, "\n");
  const auto append = [&key](const std::vector<int>& numbers) {
    key.append(reinterpret_cast<const char*>(numbers.data()),
               numbers.size() * sizeof(int));
    key.push_back('\n');
  };
  append(place.gpus);
  for (const auto& [from, to] : traffic.sends) append({from, to});
  key.push_back('\n');
  for (const std::vector<int>& ranks : traffic.copies) append(ranks);
  key.push_back('\n');
  append(traffic.tied);
  append(traffic.offloads);
  return key;
}

// Returns true if all GPUs have the same device as their representative.
bool DevicesAreAlike(const Symmetry& symmetry, const Costs& costs) {
  for (int i = 0; i < std::ssize(costs.gpu_device); ++i) {
    const int other = symmetry.IndexOf(symmetry.RepresentativeOf(i));
    if (costs.gpu_device[i] != costs.gpu_device[other]) return false;
  }
  return true;
}

}  // namespace

std::string NetworkKey(const scenarios::ResolvedScenario& scenario) {
  return scenario.given_costs
             ? absl::StrFormat("given costs %d %a",
                               scenario.placement.num_gpus(),
                               scenario.scenario.costs().hop_seconds())
             : scenario.cluster.SerializeAsString();
}

Traffic TrafficOf(const schedules::Schedule& schedule) {
  Traffic traffic;
  std::set<std::pair<int, int>> sends;
  for (const std::vector<int>& route : schedule.routes) {
    for (size_t s = 0; s + 1 < route.size(); ++s) {
      if (route[s] == route[s + 1]) continue;
      sends.insert({route[s], route[s + 1]});
      if (!schedule.forward_only) sends.insert({route[s + 1], route[s]});
    }
  }
  traffic.sends.assign(sends.begin(), sends.end());
  std::set<std::vector<int>> copies;
  for (int s = 0; s < schedule.num_stages; ++s) {
    std::set<int> ranks;  // on routes that some microbatch takes
    for (int route = 0; route < schedule.num_routes(); ++route) {
      if (route * schedule.microbatches_per_route_turn >=
          schedule.total_microbatches()) {
        break;
      }
      ranks.insert(schedule.routes[route][s]);
    }
    if (ranks.size() > 1) copies.insert({ranks.begin(), ranks.end()});
  }
  traffic.copies.assign(copies.begin(), copies.end());
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const auto& actions = schedule.rank_actions[rank];
    if (std::any_of(actions.begin(), actions.end(),
                    [](const schedules::Action& action) {
                      return !schedules::IsCompute(action.op);
                    })) {
      traffic.offloads.push_back(rank);
    }
  }
  return traffic;
}

Traffic WholeTraffic(Traffic traffic, const scenarios::Placement& place,
                     const schedules::Schedule& schedule, const Costs& costs) {
  if (place.data > 1 || ReplicaGroups(costs, place).crosses_tensor()) {
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      traffic.copies.push_back({rank});
    }
  }
  const std::vector<int> first = schedule.RanksOf(0);
  const std::vector<int> last = schedule.RanksOf(costs.tied_stage);
  if (costs.tied_gradient_bytes > 0 && schedule.flush &&
      !schedule.forward_only && first.size() == 1 && last.size() == 1 &&
      first != last) {
    traffic.tied = {first[0], last[0]};
  }
  traffic.expert_parallel = costs.expert_parallel;
  traffic.expert_tensor = costs.expert_tensor;
  traffic.shard_replicas = costs.shard_replicas;
  traffic.context_neighbors = costs.context.neighbors;
  traffic.context_ring = costs.context.ring;
  traffic.models_collectives = costs.collectives != nullptr;
  const auto slows = [](const DeviceCosts& device) {
    return device.collective_slowdown != 1 || device.copy_slowdown != 1;
  };
  traffic.slows_passes =
      slows(costs) || std::any_of(costs.other_devices.begin(),
                                  costs.other_devices.end(), slows);
  return traffic;
}

std::shared_ptr<const SymmetryResult> SymmetryCache::SymmetryOf(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network, const schedules::Schedule& schedule,
    const Traffic& traffic, const Costs& costs) {
  const auto no = [](absl::string_view why_not) {
    return std::make_shared<const SymmetryResult>(
        SymmetryResult{std::nullopt, why_not});
  };
  const scenarios::Placement& place = scenario.placement;
  const auto shares = [](const DeviceCosts& device) {
    return device.partition_slowdown != nullptr;
  };
  if (place.data * place.tensor == 1) return no("one GPU per pipeline rank");
  if (shares(costs) || std::any_of(costs.other_devices.begin(),
                                   costs.other_devices.end(), shares)) {
    return no("GPUs are partitions of one GPU");
  }
  const Traffic whole = WholeTraffic(traffic, place, schedule, costs);
  const std::string key = SymmetryKey(scenario, whole);
  auto answer = symmetries_.Find(key);
  if (answer == nullptr) {
    answer =
        symmetries_.Add(key, place.num_gpus(),
                        std::make_shared<const SymmetryResult>(SymmetryResult{
                            Symmetry::Find(network, place, whole),
                            "no two GPUs are equivalent"}));
  }
  if (answer->symmetry.has_value() &&
      !DevicesAreAlike(*answer->symmetry, costs)) {
    return no("the GPUs of a pipeline rank differ");
  }
  return answer;
}

}  // namespace weir::sim
