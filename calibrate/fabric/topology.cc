// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/topology.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"

namespace weir::calibrate {
namespace {

// Returns Slurm's address of a node without the node, "spine.leaf"; empty if it
// names no switch. A node's name may contain dots, so the pattern determines
// the count.
std::string LeafOf(const Presence& presence) {
  if (presence.topology_pattern().empty()) return "";
  std::vector<std::string> names =
      absl::StrSplit(presence.topology_address(), '.');
  const std::vector<std::string> kinds =
      absl::StrSplit(presence.topology_pattern(), '.');
  if (kinds.size() < 2 || names.size() < kinds.size()) return "";
  names.resize(kinds.size() - 1);
  return absl::StrJoin(names, ".");
}

// Assigns indices to names in order of first appearance.
class Numbering {
 public:
  int Of(const std::string& name) {
    return numbers_.try_emplace(name, static_cast<int>(numbers_.size()))
        .first->second;
  }

 private:
  std::map<std::string, int> numbers_;
};

}  // namespace

absl::StatusOr<NetworkTopology> LoadTopology(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  NetworkTopology topology;
  RETURN_IF_ERROR(ParseTextProto(path, text, &topology));
  Problems problems(path);
  if (topology.leaves().empty()) {
    problems.Add("leaves", "is empty, expected one for each leaf switch");
  }
  std::map<std::string, std::string> leaf_of;
  for (int i = 0; i < topology.leaves_size(); ++i) {
    const NetworkTopology::Leaf& leaf = topology.leaves(i);
    const std::string field = absl::StrCat("leaves[", i, "]");
    if (leaf.name().empty()) problems.Add(field + ".name", "is missing");
    if (leaf.nodes().empty()) problems.Add(field + ".nodes", "is empty");
    for (const std::string& node : leaf.nodes()) {
      const auto [at, added] = leaf_of.emplace(node, leaf.name());
      if (!added) {
        problems.Add(field + ".nodes",
                     absl::StrCat("has ", node, ", which is on ", at->second,
                                  " already, expected every node once"));
      }
    }
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return topology;
}

absl::StatusOr<std::vector<RankPlace>> PositionsOf(
    const std::vector<Presence>& presences, const NetworkTopology* topology) {
  std::map<std::string, std::string> leaf_of;
  if (topology != nullptr) {
    for (const NetworkTopology::Leaf& leaf : topology->leaves()) {
      for (const std::string& node : leaf.nodes()) leaf_of[node] = leaf.name();
    }
  }
  Problems problems("topology");
  Numbering nodes, leaves;
  std::map<std::string, int> missing;
  std::vector<RankPlace> places;
  for (const Presence& presence : presences) {
    RankPlace place;
    place.node = nodes.Of(presence.node());
    place.switches.assign(presence.switch_addresses().begin(),
                          presence.switch_addresses().end());
    place.gpu_address = presence.gpu_address();
    const auto found = leaf_of.find(presence.node());
    if (topology != nullptr && found == leaf_of.end() &&
        missing[presence.node()]++ == 0) {
      problems.Add(presence.node(), "is on no leaf, expected exactly one");
    }
    const std::string leaf =
        found == leaf_of.end() ? LeafOf(presence) : found->second;
    if (!leaf.empty()) place.leaf = leaves.Of(leaf);
    places.push_back(std::move(place));
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return places;
}

LinkClass::Distance DistanceOf(const RankPlace& a, const RankPlace& b) {
  if (a.node != b.node) {
    return a.leaf >= 0 && a.leaf == b.leaf ? LinkClass::SAME_LEAF
                                           : LinkClass::ACROSS_SPINES;
  }
  const bool shared =
      std::any_of(a.switches.begin(), a.switches.end(), [&](const auto& name) {
        return std::find(b.switches.begin(), b.switches.end(), name) !=
               b.switches.end();
      });
  return shared ? LinkClass::SAME_SWITCH : LinkClass::SAME_NODE;
}

absl::string_view NameOf(LinkClass::Distance distance) {
  switch (distance) {
    case LinkClass::SAME_GPU:
      return "same GPU";
    case LinkClass::SAME_SWITCH:
      return "same switch";
    case LinkClass::SAME_NODE:
      return "same node";
    case LinkClass::SAME_LEAF:
      return "same leaf";
    case LinkClass::ACROSS_SPINES:
      return "across spines";
    default:
      return "unspecified";
  }
}

}  // namespace weir::calibrate
