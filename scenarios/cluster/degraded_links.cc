// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cluster/degraded_links.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/text.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/dragonfly.h"
#include "scenarios/cluster/slow_parts.h"

namespace weir::scenarios {
namespace {

bool IsShare(double share) { return share >= 0 && share < 1; }

absl::Status BadFailedLink(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "is ", EscapeLine(text),
      ", expected an adapter (node3.nic2), a leaf switch (leaf:2), several of "
      "its links (leaf:2=3), or a link of a dragonfly (leaf3-leaf5)"));
}

// Parses "leaf3-leaf5".
bool ParseLeafLink(absl::string_view name, int* leaf, int* other) {
  const std::vector<absl::string_view> ends = absl::StrSplit(name, '-');
  if (ends.size() != 2) return false;
  absl::string_view first = ends[0], second = ends[1];
  return absl::ConsumePrefix(&first, "leaf") &&
         absl::ConsumePrefix(&second, "leaf") &&
         absl::SimpleAtoi(first, leaf) && absl::SimpleAtoi(second, other) &&
         *leaf >= 0 && *other >= 0;
}

absl::StatusOr<FailedLink> ParseFailedLink(absl::string_view text) {
  FailedLink failed;
  absl::string_view what = text;
  int one = 0, other = 0;
  if (ParseLeafLink(text, &one, &other)) {
    failed.set_link(std::string(text));
    return failed;
  }
  if (absl::ConsumePrefix(&what, "leaf")) {
    absl::ConsumePrefix(&what, ":");
    const std::vector<absl::string_view> parts = absl::StrSplit(what, '=');
    uint32_t leaf = 0, count = 1;
    if (parts.size() > 2 || !absl::SimpleAtoi(parts[0], &leaf) ||
        (parts.size() == 2 &&
         (!absl::SimpleAtoi(parts[1], &count) || count == 0))) {
      return BadFailedLink(text);
    }
    failed.set_leaf(leaf);
    failed.set_count(count);
    return failed;
  }
  absl::ConsumePrefix(&what, "link:");
  if (what.empty() || what.find('=') != absl::string_view::npos) {
    return BadFailedLink(text);
  }
  failed.set_nic(std::string(what));
  return failed;
}

absl::StatusOr<BackgroundTraffic> ParseTraffic(absl::string_view text) {
  const absl::Status error = absl::InvalidArgumentError(
      absl::StrCat("is ", EscapeLine(text),
                   ", expected fabric=0.3, leaf:2=0.3 or link:node3.nic2=0.3, "
                   "with shares from 0 to below 1"));
  const size_t at = text.rfind('=');
  BackgroundTraffic traffic;
  double share = 0;
  if (at == absl::string_view::npos ||
      !absl::SimpleAtod(text.substr(at + 1), &share) || !IsShare(share)) {
    return error;
  }
  traffic.set_share(share);
  absl::string_view what = text.substr(0, at);
  uint32_t leaf = 0;
  if (what == "fabric") {
    traffic.set_fabric(true);
  } else if (absl::ConsumePrefix(&what, "link:")) {
    if (what.empty()) return error;
    traffic.set_link(std::string(what));
  } else if (absl::ConsumePrefix(&what, "leaf")) {
    absl::ConsumePrefix(&what, ":");
    if (!absl::SimpleAtoi(what, &leaf)) return error;
    traffic.set_leaf(leaf);
  } else {
    return error;
  }
  return traffic;
}

template <typename Part>
absl::StatusOr<std::vector<Part>> ParseAll(
    absl::string_view text, absl::StatusOr<Part> (*parse)(absl::string_view)) {
  std::vector<Part> parts;
  for (absl::string_view one : absl::StrSplit(text, ',')) {
    auto part = parse(one);
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
  }
  return parts;
}

// Parses "node3.nic2".
bool ParseNic(absl::string_view name, int* node, int* nic) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  if (parts.size() != 2) return false;
  absl::string_view first = parts[0], second = parts[1];
  return absl::ConsumePrefix(&first, "node") &&
         absl::ConsumePrefix(&second, "nic") && absl::SimpleAtoi(first, node) &&
         absl::SimpleAtoi(second, nic) && *node >= 0 && *nic >= 0;
}

const Node* NodeAt(const Cluster& cluster, int number) {
  for (const NodeGroup& group : cluster.groups()) {
    if (number < static_cast<int>(group.count())) return &group.node();
    number -= static_cast<int>(group.count());
  }
  return nullptr;
}

int NumLeaves(const Cluster& cluster) {
  const auto per_leaf = static_cast<int>(cluster.fabric().nodes_per_leaf());
  return per_leaf == 0 ? 1 : (NumNodes(cluster) - 1) / per_leaf + 1;
}

void CheckLeaf(const Cluster& cluster, const std::string& field, uint32_t leaf,
               Problems* problems) {
  const int num_leaves = NumLeaves(cluster);
  if (num_leaves < 2) {
    problems->Add(field, absl::StrCat("is ", leaf,
                                      ", but the cluster has one leaf "
                                      "switch and no links to others, expected "
                                      "several (--nodes-per-leaf)"));
  } else if (leaf >= static_cast<uint32_t>(num_leaves)) {
    problems->Add(
        field, absl::StrCat("is ", leaf, ", expected 0 to ", num_leaves - 1));
  }
}

void CheckFailed(const Cluster& cluster, Problems* problems) {
  for (int i = 0; i < cluster.failed_size(); ++i) {
    const FailedLink& failed = cluster.failed(i);
    const std::string field = absl::StrCat("failed[", i, "]");
    switch (failed.part_case()) {
      case FailedLink::kNic: {
        int number = 0, nic = 0;
        const Node* node = nullptr;
        if (ParseNic(failed.nic(), &number, &nic)) {
          node = NodeAt(cluster, number);
        }
        if (node == nullptr || nic >= node->nics_size()) {
          problems->Add(field + ".nic",
                        absl::StrCat("is ", EscapeLine(failed.nic()),
                                     ", expected an adapter of the cluster "
                                     "such as node0.nic0"));
        }
        break;
      }
      case FailedLink::kLeaf:
        CheckLeaf(cluster, field + ".leaf", failed.leaf(), problems);
        if (cluster.fabric().has_dragonfly()) {
          problems->Add(field + ".leaf",
                        "is given for a dragonfly, which has no links to a "
                        "spine, expected a link such as leaf0-leaf1");
        }
        break;
      case FailedLink::kLink: {
        int leaf = 0, other = 0;
        if (!cluster.fabric().has_dragonfly()) {
          problems->Add(field + ".link",
                        "is given for a network that is not a dragonfly, "
                        "expected nic or leaf");
        } else if (!ParseLeafLink(failed.link(), &leaf, &other) ||
                   !DragonflyLinks(cluster).Fail(leaf, other)) {
          problems->Add(field + ".link",
                        absl::StrCat("is ", EscapeLine(failed.link()),
                                     ", expected a link of the dragonfly such "
                                     "as leaf0-leaf1"));
        }
        break;
      }
      case FailedLink::PART_NOT_SET:
        problems->Add(field, "is empty, expected nic, leaf or link");
        break;
    }
  }
  if (!problems->empty()) return;
  if (cluster.fabric().has_dragonfly()) {
    DragonflyLinks links(cluster);
    for (const auto& [leaf, other] : FailedLeafLinks(cluster)) {
      links.Fail(leaf, other);
    }
    if (!links.connected()) {
      problems->Add("failed",
                    "leaves leaf switches without a route to others, expected "
                    "links that work");
    }
  }
  for (const auto& [number, nics] : FailedNics(cluster)) {
    const Node* node = NodeAt(cluster, number);
    if (static_cast<int>(nics.size()) < node->nics_size()) continue;
    problems->Add("failed", absl::StrCat("has all ", node->nics_size(),
                                         " adapters of node ", number,
                                         ", expected one that works"));
  }
  const int num_uplinks = UplinksPerLeaf(cluster);
  std::set<int> leaves;
  for (const FailedLink& failed : cluster.failed()) {
    if (!failed.has_leaf()) continue;
    const auto leaf = static_cast<int>(failed.leaf());
    const int count = FailedUplinks(cluster, leaf);
    if (count < num_uplinks || !leaves.insert(leaf).second) continue;
    problems->Add("failed",
                  absl::StrCat("has ", count, " links of leaf ", leaf, ", of ",
                               num_uplinks, ", expected one that works"));
  }
}

void CheckTraffic(const Cluster& cluster, Problems* problems) {
  const Network network(cluster);
  for (int i = 0; i < cluster.background_size(); ++i) {
    const BackgroundTraffic& traffic = cluster.background(i);
    const std::string field = absl::StrCat("background[", i, "]");
    if (!IsShare(traffic.share())) {
      problems->Add(field + ".share",
                    absl::StrCat("is ", traffic.share(),
                                 ", expected a number from 0 to below 1"));
    }
    switch (traffic.part_case()) {
      case BackgroundTraffic::kLink:
        CheckLinkName(field + ".link", traffic.link(), network, problems);
        break;
      case BackgroundTraffic::kLeaf:
        CheckLeaf(cluster, field + ".leaf", traffic.leaf(), problems);
        break;
      case BackgroundTraffic::kFabric:
        if (!traffic.fabric() || NumLeaves(cluster) < 2) {
          problems->Add(field + ".fabric",
                        traffic.fabric()
                            ? "is true, but the cluster has one leaf switch "
                              "and no links to others, expected link"
                            : "is false, expected true");
        }
        break;
      case BackgroundTraffic::PART_NOT_SET:
        problems->Add(field, "is empty, expected link, leaf or fabric");
        break;
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<FailedLink>> ParseFailedLinks(
    absl::string_view text) {
  return ParseAll<FailedLink>(text, ParseFailedLink);
}

absl::StatusOr<std::vector<BackgroundTraffic>> ParseBackgroundTraffic(
    absl::string_view text) {
  return ParseAll<BackgroundTraffic>(text, ParseTraffic);
}

std::string TextOf(const FailedLink& failed) {
  if (failed.has_nic()) return failed.nic();
  if (failed.has_link()) return failed.link();
  return absl::StrCat("leaf:", failed.leaf(), "=",
                      std::max(failed.count(), 1U));
}

std::string TextOf(const BackgroundTraffic& traffic) {
  const std::string part =
      traffic.has_link()   ? absl::StrCat("link:", traffic.link())
      : traffic.has_leaf() ? absl::StrCat("leaf:", traffic.leaf())
                           : "fabric";
  return absl::StrCat(part, "=", traffic.share());
}

absl::Status CheckDegradedLinks(absl::string_view label,
                                const Cluster& cluster) {
  if (cluster.failed().empty() && cluster.background().empty()) {
    return absl::OkStatus();
  }
  Problems problems(label);
  CheckFailed(cluster, &problems);
  if (problems.empty()) CheckTraffic(cluster, &problems);
  return problems.ToStatus();
}

std::map<int, std::set<int>> FailedNics(const Cluster& cluster) {
  std::map<int, std::set<int>> nics;
  for (const FailedLink& failed : cluster.failed()) {
    int node = 0, nic = 0;
    if (failed.has_nic() && ParseNic(failed.nic(), &node, &nic)) {
      nics[node].insert(nic);
    }
  }
  return nics;
}

std::vector<std::pair<int, int>> FailedLeafLinks(const Cluster& cluster) {
  std::vector<std::pair<int, int>> links;
  for (const FailedLink& failed : cluster.failed()) {
    int leaf = 0, other = 0;
    if (failed.has_link() && ParseLeafLink(failed.link(), &leaf, &other)) {
      links.emplace_back(leaf, other);
    }
  }
  return links;
}

void FailNics(const std::set<int>& nics, NodeWiring* wiring) {
  const int num_nics = wiring->node.nics_size();
  wiring->rail_gpus.clear();
  for (int gpu = 0; gpu < wiring->num_gpus(); ++gpu) {
    std::vector<int32_t>& own = wiring->gpu_nics[gpu];
    const std::vector<int32_t> before = own;
    std::erase_if(own, [&](int32_t nic) { return nics.count(nic) > 0; });
    for (int i = 1; own.empty(); ++i) {
      const int next = (before.front() + i) % num_nics;
      if (nics.count(next) == 0) own.push_back(next);
    }
    for (const int32_t nic : own) {
      std::vector<int32_t>& on_rail =
          wiring->rail_gpus[wiring->node.nics(nic).rail()];
      if (on_rail.empty() || on_rail.back() != gpu) on_rail.push_back(gpu);
    }
  }
}

bool HasDegradedUplinks(const Cluster& cluster) {
  return std::any_of(
             cluster.failed().begin(), cluster.failed().end(),
             [](const FailedLink& failed) { return failed.has_leaf(); }) ||
         std::any_of(cluster.background().begin(), cluster.background().end(),
                     [](const BackgroundTraffic& traffic) {
                       return !traffic.has_link();
                     });
}

int UplinksPerLeaf(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric();
  if (fabric.uplinks_per_leaf() > 0) {
    return static_cast<int>(fabric.uplinks_per_leaf());
  }
  const Node& node = cluster.groups(0).node();
  double nics = node.nics_size();
  if (fabric.rail_optimized()) {
    std::set<uint32_t> rails;
    for (const Nic& nic : node.nics()) rails.insert(nic.rail());
    nics /= static_cast<double>(std::max<size_t>(rails.size(), 1));
  }
  const double nodes =
      std::min<double>(fabric.nodes_per_leaf(), NumNodes(cluster));
  return std::max(
      1, static_cast<int>(std::lround(
             nodes * nics / std::max(fabric.oversubscription(), 1.0))));
}

int FailedUplinks(const Cluster& cluster, int leaf) {
  double count = 0;
  for (const FailedLink& failed : cluster.failed()) {
    if (failed.has_leaf() && static_cast<int>(failed.leaf()) == leaf) {
      count += std::max(failed.count(), 1U);
    }
  }
  return static_cast<int>(std::min(count, 1e9));
}

double RateLeftAtLeaf(const Cluster& cluster, int leaf) {
  double left = 1;
  for (const BackgroundTraffic& traffic : cluster.background()) {
    const bool is_here =
        traffic.has_fabric() ||
        (traffic.has_leaf() && static_cast<int>(traffic.leaf()) == leaf);
    if (is_here) left *= 1 - traffic.share();
  }
  return left;
}

void ApplyBackground(const Cluster& cluster, std::vector<Link>* links) {
  for (const BackgroundTraffic& traffic : cluster.background()) {
    if (!traffic.has_link()) continue;
    for (Link& link : *links) {
      if (NamesLink(traffic.link(), link.name)) {
        link.bytes_per_second *= 1 - traffic.share();
      }
    }
  }
}

}  // namespace weir::scenarios
