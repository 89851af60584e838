// SPDX-License-Identifier: Apache-2.0
// Symmetry reduction: simulates one GPU for all GPUs that provably do the same.
// Every pipeline rank keeps one GPU for each class of replicas and each class
// of tensor ranks; in the best case, one GPU represents all of them.
//
// A "use" is a hop that a flow can take. It is part of an instance (a transfer
// from one GPU to another, or the collective of one group). Instances that the
// same part of the reduced graph represents have the same role. Uses and links
// are colored.
//
// Theorem. Suppose that the following holds, checked by numbers and not by
// hashes:
// 1. Links of one color have the same rate and are crossed by equally many uses
//    of each color.
// 2. Uses of one color have the same latency, cross equally many links of each
//    color, and all have the same role.
// 3. Instances of one role have the same colors and the same price (rings,
//    rates, latency, kind of wire, leaf switch or not).
// 4. GPUs of one class are the same device and, if flows slow passes down, are
//    touched by flows of the same colors.
// Suppose also that the task graph has these properties, which are not checked
// here:
// 5. Tasks wait only for tasks: nothing depends on which event comes first.
// 6. The duration and the predecessors of a task follow from its role, or from
//    its action and the class of its GPU, and every flow takes a use of the
//    network.
// 7. All flows in flight share links max-min fairly.
// Then all tasks that one task represents start and end at the same time in the
// full run. The reduced graph has these times if it has, for every color of
// links, one link on which a flow counts as often as flows of its color cross
// each link of that color.
//
// Proof by induction over time. A task with one predecessor in the reduced
// graph has equal predecessors in the full graph, which have ended at the same
// time. Hence flows of one color start together, and so do passes of a class.
// Max-min fairness raises all rates equally until links saturate: by 1 and 2,
// links of a color carry the same load and saturate together, and flows of a
// color stop growing together. So their rates are equal at all times, they end
// together, and by 3, 4 and 6 equal tasks follow. For each color of links, the
// reduced link imposes the same constraint as one link of that color.
//
// This needs no automorphism of the cluster, only equal counts
// (docs/decisions/0018). Times are real numbers here. The rounding of the two
// runs differs, and so may the order of simultaneous events, which only affects
// what is in memory at that time (sim/report/memory.cc).
#ifndef WEIR_SIM_GRAPH_SYMMETRY_H_
#define WEIR_SIM_GRAPH_SYMMETRY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scenarios/cluster/network.h"
#include "scenarios/cluster/placement.h"
#include "sim/engine/task_graph.h"
#include "sim/graph/communication_lowering.h"

namespace weir::sim {

// The communication pattern, regardless of bytes and frequency.
struct Traffic {
  std::vector<std::pair<int, int>> sends;  // from rank to rank
  // Sets of ranks that have copies of a stage, ascending; sets of one rank only
  // if there are replicas.
  std::vector<std::vector<int>> copies;
  std::vector<int> tied;  // the two ranks that sum a tied embedding, or none
  std::vector<int> offloads;  // ranks that offload to their host
  int expert_parallel = 1;    // as in Costs
  int expert_tensor = 0;
  int shard_replicas = 1;
  int context_neighbors = 1;  // ContextGroups
  int context_ring = 1;
  bool slows_passes = false;        // flows slow down passes on their GPUs
  bool models_collectives = false;  // latencies come from a model

  auto operator<=>(const Traffic&) const = default;
};

class Symmetry {
 public:
  // Finds a symmetry reduction. Starts with all GPUs in one class and splits
  // classes by what their members do, until all members do the same. Returns
  // std::nullopt if no GPU then represents another one.
  static std::optional<Symmetry> Find(
      const scenarios::Network& network,
      const scenarios::Placement& full_placement, const Traffic& traffic);

  const scenarios::Placement& full_placement() const { return full_placement_; }
  // The representative GPUs, by class of replicas and of tensor ranks; the
  // first GPU of each class.
  const scenarios::Placement& representatives() const {
    return representatives_;
  }
  // Returns the index in representatives() of the GPU that represents this one
  // of full_placement().
  int RepresentativeOf(int index) const;
  // Returns the index in full_placement() of this GPU of representatives().
  int IndexOf(int representative) const;
  // [class]: the representative replica and tensor rank, as in
  // full_placement().
  const std::vector<int32_t>& replicas() const { return replicas_; }
  const std::vector<int32_t>& tensor_ranks() const { return tensor_ranks_; }

  // The links that routes of the reduced graph name. A route names a link k
  // times if it represents k flows of the full graph that cross the link.
  const std::vector<scenarios::Link>& links() const { return links_; }

  // A color of uses.
  struct Color {
    scenarios::Route route;  // over links(); original latency
    // The representatives, as GPUs of the cluster, that its flows touch.
    Slowdowns::Touch touch;
    // No flow of another role or of another color crosses its links.
    bool has_own_links = true;
  };
  const Color& color(int32_t index) const { return colors_[index]; }
  int32_t num_colors() const { return static_cast<int32_t>(colors_.size()); }

  // Returns an index into Traffic::copies. Requires: `ranks` is one of them.
  int IndexOfCopies(const std::vector<int>& ranks) const;
  // Returns the color of a transfer; -1: no link joins its GPUs.
  int32_t ColorOf(const InstanceRole& role) const;
  // Returns the group that CommunicationLowering::GroupOf makes of the first
  // instance of `role`, except that its hops are colors, each listed once.
  const Group& GroupOf(const InstanceRole& role) const {
    return groups_.at(role);
  }

 private:
  friend class SymmetrySearch;

  scenarios::Placement full_placement_, representatives_;
  std::vector<int32_t> replica_class_, tensor_class_;
  std::vector<int32_t> replicas_, tensor_ranks_;  // [class]
  std::vector<scenarios::Link> links_;
  std::vector<Color> colors_;
  absl::flat_hash_map<std::vector<int>, int> copies_index_;
  absl::flat_hash_map<InstanceRole, int32_t> sends_;
  absl::flat_hash_map<InstanceRole, Group> groups_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_SYMMETRY_H_
