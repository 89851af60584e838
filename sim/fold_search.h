// SPDX-License-Identifier: Apache-2.0
// How a Fold is found: Fold::Find in steps, one source file for each part.
#ifndef WEIR_SIM_FOLD_SEARCH_H_
#define WEIR_SIM_FOLD_SEARCH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sim/fold.h"

namespace weir {

// Begins with one class of replicas and one of tensor ranks, and splits them
// until all of a class do the same.
class FoldSearch {
 public:
  FoldSearch(const Network& network, const Placement& everybody,
             const Traffic& traffic);

  std::optional<Fold> Run();

 private:
  // One hop that a flow can take.
  struct Use {
    int32_t from = 0, to = 0;  // GPUs of the cluster; below 0: a host's memory
    int32_t first_link = 0, end_link = 0;  // in use_links_
    double latency_seconds = 0;            // as far as it matters
    uint8_t kind = 0;                      // of hop: no two of a kind differ
    uint64_t colour = 0;
    int32_t number = -1;  // of its colour
  };
  // What is done once in the folded graph and here by several.
  struct Instance {
    FoldRole name;  // with replica and tensor rank instead of their classes
    int32_t role = 0;
    int32_t first_use = 0, end_use = 0;
    int32_t group = -1;  // index into groups_
    // Of a transfer: what it is priced by.
    Wire wire = Wire::kNone;
    bool same_leaf = false;
    double latency_seconds = 0;
    std::vector<uint64_t> colours = {};  // ascending, each once
    uint64_t signature = 0;              // of all that must be alike
  };
  struct Role {
    FoldRole name;
    int32_t first = 0;  // instance
  };

  static uint64_t Mix(uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::span<const int32_t> LinksOf(const Use& use) const {
    return {use_links_.data() + use.first_link,
            use_links_.data() + use.end_link};
  }
  std::span<const Use> UsesOf(const Instance& instance) const {
    return {uses_.data() + instance.first_use, uses_.data() + instance.end_use};
  }

  // fold_uses.cc: what flows there can be.
  void AddUses();
  // Of one GPU of each rank.
  void AddUsesOf(int r, int t);
  std::vector<int> Members(const std::vector<int>& ranks, int first_replica,
                           int end_replica, int stride, int first_tensor_rank,
                           int end_tensor_rank) const;
  Instance InstanceOf(const FoldRole& name) const;
  // Of the last instance. Nothing without links.
  void AddUse(int from, int to, const Route& route, uint8_t kind);
  void AddSend(const FoldRole& name, int from, int to);
  void AddGroup(const FoldRole& name, const std::vector<int>& gpus);
  // Only links that somebody uses count.
  void NumberLinks();

  // fold_colours.cc: what cannot be told apart by counts.
  // By the classes of now.
  void NameRoles();
  void Refine();
  // What the hashes claim, checked without them: whatever colours are, these
  // counts are what the proof needs.
  bool IsEquitable();
  std::vector<uint64_t> SortedLinkColours(const Use& use) const;
  // No colour is of two roles. (By hashes it cannot be.)
  bool RolesAreApart();

  // fold_classes.cc: who does the same.
  static bool PricedAlike(const Group& a, const Group& b);
  void SignInstances();
  // All of a role have the same colours and prices.
  bool InstancesAreAlike() const;
  // Those that do not do the same. False: all do, as far as replicas and tensor
  // ranks can be told apart.
  bool SplitClasses();
  static bool Split(const std::vector<uint64_t>& signatures,
                    std::vector<int32_t>* classes);

  // fold.cc: what the fold says of it.
  void SetRepresentatives();
  // Classes are numbered in the order of their first.
  static std::vector<int32_t> FirstOfEach(const std::vector<int32_t>& classes);
  void NumberColours();
  // A GPU is touched by flows of the same colours as whom stands for it.
  bool TouchesAreAlike();
  // One link for all of a colour; and of links that carry the same, the one
  // with the least room for it.
  bool AddLinks();
  // Says which colours each role has.
  void NameColours();

  static constexpr uint8_t kLone = 0, kIntra = 1, kInter = 2, kHost = 3;
  // More would cost more than they save.
  static constexpr size_t kMaxNames = 4096;

  const Network& network_;
  const Placement& place_;
  const Traffic& traffic_;
  TaskGraph hops_;  // only its pairs
  Ways ways_;
  Fold fold_;
  std::vector<Use> uses_;
  std::vector<int32_t> use_links_;
  std::vector<Instance> instances_;
  std::vector<Role> roles_;
  std::vector<Group> groups_;
  std::vector<double> rates_;                    // [link]
  std::vector<uint64_t> link_colours_;           // [link]
  std::vector<std::vector<uint64_t>> crossing_;  // [link] colours, ascending
  absl::flat_hash_map<uint64_t, int32_t> colour_number_;
};

}  // namespace weir

#endif  // WEIR_SIM_FOLD_SEARCH_H_
