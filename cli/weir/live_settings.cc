// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/live_settings.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "cli/options/overrides.h"
#include "schedules/own_name.h"
#include "schedules/registry.h"
#include "schedules/source.h"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

uint32_t ReadCount(const Json& json, const char* name, uint32_t most,
                   Problems* problems) {
  const auto at = json.find(name);
  if (at == json.end() || !at->is_number_integer() || *at < 1 || *at > most) {
    problems->Add(name,
                  absl::StrCat("is ", at == json.end() ? "missing" : "invalid",
                               ", expected an integer from 1 to ", most));
    return 1;
  }
  return at->get<uint32_t>();
}

double ReadNumber(const Json& json, const char* name, double least, double most,
                  Problems* problems) {
  const auto at = json.find(name);
  if (at == json.end() || !at->is_number()) {
    problems->Add(name, "is not a number, expected one");
    return least;
  }
  const double value = at->get<double>();
  problems->CheckRange(name, value, least, most);
  return value;
}

// Scales the links of a cluster, and the rates between its switches, which are
// multiples of those of NICs unless they are given.
void ScaleLinks(double factor, Cluster* cluster) {
  for (NodeGroup& group : *cluster->mutable_groups()) {
    Node* node = group.mutable_node();
    for (Nic& nic : *node->mutable_nics()) {
      nic.set_bytes_per_second(nic.bytes_per_second() * factor);
    }
    if (node->has_nv_switch()) {
      node->mutable_nv_switch()->set_bytes_per_second(
          node->nv_switch().bytes_per_second() * factor);
    }
    if (node->has_nv_link_mesh()) {
      node->mutable_nv_link_mesh()->set_bytes_per_second_per_link(
          node->nv_link_mesh().bytes_per_second_per_link() * factor);
    }
    if (node->has_pcie()) {
      PcieTree* pcie = node->mutable_pcie();
      pcie->set_gpu_bytes_per_second(pcie->gpu_bytes_per_second() * factor);
      pcie->set_uplink_bytes_per_second(pcie->uplink_bytes_per_second() *
                                        factor);
      pcie->set_socket_bytes_per_second(pcie->socket_bytes_per_second() *
                                        factor);
    }
  }
  if (cluster->fabric().has_dragonfly()) {
    Dragonfly* dragonfly = cluster->mutable_fabric()->mutable_dragonfly();
    dragonfly->set_local_bytes_per_second(dragonfly->local_bytes_per_second() *
                                          factor);
    dragonfly->set_global_bytes_per_second(
        dragonfly->global_bytes_per_second() * factor);
  }
}

}  // namespace

Json LiveSettingsJson(const LiveSettings& settings) {
  return {{"pipeline", settings.pipeline},
          {"microbatches", settings.microbatches},
          {"chunks", settings.chunks},
          {"schedule", settings.schedule},
          {"bandwidth", settings.bandwidth},
          {"memory_limit_bytes", settings.memory_limit_bytes},
          {"slowest_gpu", settings.slowest_gpu}};
}

absl::StatusOr<LiveSettings> ParseLiveSettings(const std::string& text) {
  Problems problems("settings");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    problems.Add("", "is not a JSON object with settings");
    return problems.ToStatus();
  }
  LiveSettings settings;
  settings.pipeline = ReadCount(json, "pipeline", kMostLivePipeline, &problems);
  settings.microbatches =
      ReadCount(json, "microbatches", kMostLiveMicrobatches, &problems);
  settings.chunks = ReadCount(json, "chunks", kMostLiveChunks, &problems);
  settings.bandwidth = ReadNumber(json, "bandwidth", 1 / kMostLiveBandwidth,
                                  kMostLiveBandwidth, &problems);
  settings.memory_limit_bytes =
      ReadNumber(json, "memory_limit_bytes", 0, 1e15, &problems);
  settings.slowest_gpu =
      ReadNumber(json, "slowest_gpu", kLeastLiveSpeed, 1, &problems);
  const auto schedule = json.find("schedule");
  if (schedule == json.end() || !schedule->is_string()) {
    problems.Add("schedule", "is not text, expected the name of a schedule");
  } else {
    settings.schedule = schedule->get<std::string>();
    // A page must not make weir read files.
    if (schedules::IsScheduleFile(settings.schedule)) {
      problems.Add("schedule",
                   absl::StrCat("is ", EscapeLine(settings.schedule),
                                ", expected the name of a schedule"));
    }
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return settings;
}

LiveSettings LiveSettingsOf(const scenarios::ResolvedScenario& scenario) {
  const Parallelism& parallelism = scenario.scenario.parallelism();
  LiveSettings settings;
  settings.pipeline = std::max(parallelism.pipeline(), 1u);
  settings.microbatches = static_cast<uint32_t>(scenario.num_microbatches);
  settings.chunks = std::max(parallelism.chunks(), 1u);
  settings.schedule = schedules::OwnScheduleName(scenario.scenario.schedule());
  return settings;
}

absl::StatusOr<scenarios::ResolvedScenario> WithLiveSettings(
    const ScenarioFlags& flags, const LiveSettings& settings) {
  ScenarioFlags changed = flags;
  Scenario& overrides = changed.overrides;
  overrides.mutable_parallelism()->set_pipeline(settings.pipeline);
  overrides.mutable_parallelism()->set_chunks(settings.chunks);
  overrides.mutable_batch()->clear_global_batch_size();
  overrides.set_num_microbatches(settings.microbatches);
  changed.schedules = {settings.schedule};
  if (settings.slowest_gpu < 1) {
    SlowPart* slow = overrides.add_slow();
    slow->set_gpu(0);
    slow->set_speed(settings.slowest_gpu);
  }
  ASSIGN_OR_RETURN(scenarios::ResolvedScenario scenario, ResolveFlags(changed));
  if (settings.bandwidth == 1) return scenario;
  if (scenario.given_costs) {
    GivenCosts* costs = scenario.scenario.mutable_costs();
    costs->set_hop_seconds(costs->hop_seconds() / settings.bandwidth);
  } else {
    ScaleLinks(settings.bandwidth, &scenario.cluster);
  }
  return scenario;
}

}  // namespace weir::cli
