// SPDX-License-Identifier: Apache-2.0
// The steps of Symmetry::Find, with one source file for each part.
#ifndef WEIR_SIM_GRAPH_SYMMETRY_SEARCH_H_
#define WEIR_SIM_GRAPH_SYMMETRY_SEARCH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/split_mix.h"
#include "sim/graph/symmetry.h"

namespace weir::sim {

// Starts with one class of replicas and one class of tensor ranks, and splits
// them until all members of a class do the same.
class SymmetrySearch {
 public:
  SymmetrySearch(const scenarios::Network& network,
                 const scenarios::Placement& full_placement,
                 const Traffic& traffic);

  std::optional<Symmetry> Run();

 private:
  // One hop that a flow can take.
  struct HopUse {
    int32_t from = 0, to = 0;  // GPUs of the cluster; below 0: a host's memory
    int32_t first_link = 0, end_link = 0;  // in use_links_
    double latency_seconds = 0;            // 0 if a model determines it
    uint8_t kind = 0;                      // kTransfer, kIntra, kInter or kHost
    uint64_t color = 0;
    int32_t number = -1;  // index of its color
  };
  // A transfer or a group of the full graph. The reduced graph has one for all
  // instances of a role.
  struct Instance {
    InstanceRole name;  // with replica and tensor rank, not their classes
    int32_t role = 0;
    int32_t first_use = 0, end_use = 0;
    int32_t group = -1;  // index into groups_
    // For a transfer: what its price depends on.
    scenarios::Wire wire = scenarios::Wire::kNone;
    bool same_leaf = false;
    double latency_seconds = 0;
    std::vector<uint64_t> colors = {};  // ascending, without duplicates
    uint64_t signature = 0;             // hash of all that must be equal
  };
  struct Role {
    InstanceRole name;
    int32_t first = 0;  // index of an instance
  };

  static uint64_t Mix(uint64_t x) { return SplitMix(x + kSplitMixStep); }

  std::span<const int32_t> LinksOf(const HopUse& use) const {
    return {use_links_.data() + use.first_link,
            use_links_.data() + use.end_link};
  }
  std::span<const HopUse> UsesOf(const Instance& instance) const {
    return {uses_.data() + instance.first_use, uses_.data() + instance.end_use};
  }

  // symmetry_uses.cc: the flows that are possible.
  void AddUses();
  // Adds the collectives and rings of context-parallel groups.
  void AddContextUses();
  // Adds the transfers of replica `r` and tensor rank `t`.
  void AddUsesOf(int r, int t);
  std::vector<int> Members(const std::vector<int>& ranks, int first_replica,
                           int end_replica, int stride, int first_tensor_rank,
                           int end_tensor_rank) const;
  Instance InstanceOf(const InstanceRole& name) const;
  // Adds a use to the last instance; nothing if the route has no links.
  void AddUse(int from, int to, const scenarios::Route& route, uint8_t kind);
  void AddSend(const InstanceRole& name, int from, int to);
  void AddGroup(const InstanceRole& name, const std::vector<int>& gpus);
  // Renumbers links so that only those in use count.
  void NumberLinks();

  // symmetry_colors.cc: color refinement.
  // Names roles by the current classes.
  void NameRoles();
  void Refine();
  // Returns true if conditions 1 and 2 of the theorem hold, except for roles.
  // Checked without hashes: however colors were found, the proof needs these
  // counts.
  bool IsEquitable();
  std::vector<uint64_t> SortedLinkColors(const HopUse& use) const;
  // Returns true if no color has two roles. Fails only on a hash collision.
  bool RolesAreApart();

  // symmetry_classes.cc: GPUs that do the same.
  static bool PricedAlike(const Group& a, const Group& b);
  void SignInstances();
  // Returns true if all instances of a role have the same colors and prices.
  bool InstancesAreAlike() const;
  // Splits classes whose members differ. Returns false if no replicas or tensor
  // ranks can be told apart any more.
  bool SplitClasses();
  static bool Split(const std::vector<uint64_t>& signatures,
                    std::vector<int32_t>* classes);

  // symmetry.cc: the reduction that results.
  void SetRepresentatives();
  // Requires: classes are numbered in the order of their first members.
  static std::vector<int32_t> FirstOfEach(const std::vector<int32_t>& classes);
  void NumberColors();
  // Returns true if each GPU is touched by flows of the same colors as its
  // representative.
  bool TouchesAreAlike();
  // Adds one link per color; for links with proportional loads, only the one
  // with the smallest capacity for them.
  bool AddLinks();
  // Stores the colors of each role.
  void NameColors();

  static constexpr uint8_t kTransfer = 0, kIntra = 1, kInter = 2, kHost = 3;
  // Routes with more names would cost more than they save.
  static constexpr size_t kMaxNames = 4096;

  const scenarios::Network& network_;
  const scenarios::Placement& place_;
  const Traffic& traffic_;
  TaskGraph hops_;  // only its pairs are used
  CommunicationLowering lowering_;
  Symmetry symmetry_;
  std::vector<HopUse> uses_;
  std::vector<int32_t> use_links_;
  std::vector<Instance> instances_;
  std::vector<Role> roles_;
  std::vector<Group> groups_;
  std::vector<double> rates_;                    // [link]
  std::vector<uint64_t> link_colors_;            // [link]
  std::vector<std::vector<uint64_t>> crossing_;  // [link]: colors, ascending
  absl::flat_hash_map<uint64_t, int32_t> color_number_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_SYMMETRY_SEARCH_H_
