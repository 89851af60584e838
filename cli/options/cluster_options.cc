// SPDX-License-Identifier: Apache-2.0
#include "cli/options/cluster_options.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/values.h"
#include "cli/options/add_option.h"
#include "cli/options/flags.h"
#include "scenarios/cluster/degraded_links.h"
#include "scenarios/cluster/slow_parts.h"
#include "scenarios/scenario.pb.h"
#include "scenarios/set_figures.h"

namespace weir::cli {
namespace {

absl::StatusOr<std::vector<std::string>> ParseFigureSettings(
    const std::string& text) {
  std::vector<std::string> settings =
      absl::StrSplit(text, ',', absl::SkipWhitespace());
  if (settings.empty()) return absl::InvalidArgumentError("is empty");
  for (const std::string& setting : settings) {
    RETURN_IF_ERROR(scenarios::CheckFigureSetting(setting));
  }
  return settings;
}

absl::StatusOr<double> ParseOversubscription(absl::string_view text) {
  absl::StatusOr<double> ratio = ParsePositive(text);
  if (ratio.ok() && *ratio >= 1 && *ratio <= 1e6) return ratio;
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", EscapeLine(text), ", expected a number from 1 to 1000000"));
}

}  // namespace

void AddCluster(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Cluster");
  AddText(app, "--cluster", "C", "preset, or textproto file",
          scenario->mutable_cluster());
  AddNodes(app, flags);
  AddNetwork(app, flags);
  AddText(app, "--runtime", "R",
          "training framework: megatron-lm, megatron-lm-2021, zero-bubble, "
          "megatron-deepspeed, pytorch, weir, none, or textproto file",
          scenario->mutable_runtime())
      ->default_str("by --defaults");
  AddText(app, "--profile", "P",
          "device profile: preset (weir profile list) or file",
          scenario->mutable_profile())
      ->default_str("the cluster's");
  AddOption(app, "--set", "PARAMETER=VALUE,...",
            "replace a parameter of the device profile, of the runtime "
            "(runtime.NAME, or a switch of it with true or false) or of the "
            "cluster (cluster.NAME); weir explain and weir profile show list "
            "them with their units. VALUE+-PERCENT% also gives its "
            "uncertainty, otherwise "
            "none. May be repeated",
            ParseFigureSettings, scenario->mutable_set_figures())
      ->join(',');
  AddOption(app, "--slow", "PART=SPEED,...",
            "slow parts of the cluster: gpu17=0.8, link:node3.nic2=0.5, "
            "leaf:2=0.5 (its links to the spine). May be repeated",
            scenarios::ParseSlowParts, scenario->mutable_slow())
      ->join(',');
  AddOption(
      app, "--failed", "LINK,...",
      "failed links, whose traffic takes others: an adapter (node3.nic2), "
      "a link of a leaf switch to the spine (leaf:2), or several of them "
      "(leaf:2=3). May be repeated",
      scenarios::ParseFailedLinks, scenario->mutable_failed())
      ->join(',');
  AddOption(app, "--background", "PART=SHARE,...",
            "traffic of other jobs, which takes this share of the rate of all "
            "links between switches (fabric=0.3), of those of a leaf switch "
            "(leaf:2=0.3) or of a link (link:node3.nic2=0.3). May be repeated",
            scenarios::ParseBackgroundTraffic, scenario->mutable_background())
      ->join(',');
}

void AddNodes(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  AddCount(app, "--nodes", "number of nodes",
           [=](uint32_t n) { scenario->set_num_nodes(n); })
      ->group("Cluster")
      ->default_str("the cluster's");
}

void AddNetwork(CLI::App* app, ScenarioFlags* flags) {
  Scenario* scenario = &flags->overrides;
  app->option_defaults()->group("Cluster");
  AddChoice<Topology>(
      app, "--topology", "network between the nodes (docs/clusters.md)",
      {{"one-switch", ONE_SWITCH},
       {"fat-tree", FAT_TREE},
       {"rail-optimized", RAIL_OPTIMIZED},
       {"dragonfly", DRAGONFLY}},
      [=](Topology topology) {
        scenario->mutable_cluster_changes()->set_topology(topology);
      })
      ->default_str("the cluster's");
  AddOption(app, "--oversubscription", "RATIO",
            "capacity into the leaf switches over that out of them, of a "
            "dragonfly over that between groups; 1: non-blocking",
            ParseOversubscription,
            [=](double ratio) {
              scenario->mutable_cluster_changes()->set_oversubscription(ratio);
            })
      ->default_str("the cluster's");
  AddCount(app, "--nodes-per-leaf", "nodes of a leaf switch", [=](uint32_t n) {
    scenario->mutable_cluster_changes()->set_nodes_per_leaf(n);
  })->default_str("the cluster's");
  AddCount(app, "--leaves-per-group", "switches in a group of a dragonfly",
           [=](uint32_t n) {
             scenario->mutable_cluster_changes()->set_leaves_per_group(n);
           })
      ->default_str("the cluster's");
  AddChoice<Routing>(
      app, "--routing",
      "how messages choose among paths: over a spine adaptive (spread over "
      "all) or ecmp (one for each pair of GPUs); in a dragonfly valiant "
      "(through a third group for each pair of GPUs) instead of minimal routes",
      {{"adaptive", ROUTING_ADAPTIVE},
       {"ecmp", ROUTING_ECMP},
       {"valiant", ROUTING_VALIANT}},
      [=](Routing routing) {
        scenario->mutable_cluster_changes()->set_routing(routing);
      })
      ->default_str("the cluster's");
  AddCount(app, "--uplinks-per-leaf",
           "links of a leaf switch (of each rail) to the spine",
           [=](uint32_t n) {
             scenario->mutable_cluster_changes()->set_uplinks_per_leaf(n);
           })
      ->default_str("one per adapter");
  AddCount(app, "--nvlink-domain",
           "GPUs that NVLink switches connect, 72 for example: joins nodes, or "
           "uses the first GPUs of each; --nodes then counts domains",
           [=](uint32_t n) {
             scenario->mutable_cluster_changes()->set_nvlink_domain(n);
           })
      ->default_str("the cluster's");
}

}  // namespace weir::cli
