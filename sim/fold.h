// SPDX-License-Identifier: Apache-2.0
// One GPU for all that provably do the same: of every pipeline rank one stands
// for a class of replicas and a class of tensor ranks, all of them if it can
// be.
//
// Every hop that a flow can take ("use") has a role: transfers from rank to
// rank, the collectives of a tensor group, of the copies of a stage, and so on.
// Uses of one role that stand for each other in the folded graph are coloured
// alike, links by their rate and by the colours of the uses that cross them,
// uses again by the colours of their links, until nothing changes: an equitable
// partition. A fold is exact if all instances of a role have the same colours
// and are priced alike. For then, by induction over time:
//   * flows of one colour start together, as the tasks before them do;
//   * max-min fairness fills all rates alike until links saturate. Links of a
//     colour carry equally many flows of every colour, so they saturate
//     together; flows of a colour cross equally many links of every colour, so
//     they stop growing together. Their rates are equal at all times,
//   * and they end together, whereupon equal tasks follow.
// So one flow of a colour tells what all of them do, if on each of its links it
// counts as often as flows of its colour cross one such link. No automorphism
// of the cluster is needed, only equal counts (docs/decisions/0018).
#ifndef WEIR_SIM_FOLD_H_
#define WEIR_SIM_FOLD_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scenarios/network.h"
#include "scenarios/placement.h"
#include "sim/groups.h"
#include "sim/task_graph.h"

namespace weir {

// Who communicates with whom, whatever the bytes and however often.
struct Traffic {
  std::vector<std::pair<int, int>> sends;  // from rank to rank
  // Sets of ranks that have copies of a stage, ascending; those of one rank
  // only where there are replicas.
  std::vector<std::vector<int>> copies;
  std::vector<int> tied;      // the two ranks that add up an embedding, or none
  std::vector<int> offloads;  // ranks that send to their host
  int expert_parallel = 1;    // replicas that share out experts
  bool slows_passes = false;  // do flows slow passes on their GPUs down?
  bool models_collectives = false;  // who then says what their latencies are

  auto operator<=>(const Traffic&) const = default;
};

class Fold {
 public:
  // Classes begin with everybody in one and are split by what their members do
  // until all do the same. Nothing where that leaves nobody to stand for
  // another.
  static std::optional<Fold> Find(const Network& network,
                                  const Placement& everybody,
                                  const Traffic& traffic);

  const Placement& everybody() const { return everybody_; }
  // The GPUs that stand for all, by class of replicas and of tensor ranks; the
  // first of each class.
  const Placement& representatives() const { return representatives_; }
  // The index in representatives() of whom stands for this one of everybody().
  int RepresentativeOf(int index) const;
  // The index in everybody() of this one of representatives().
  int IndexOf(int representative) const;
  // [class]: replicas and tensor ranks of everybody().
  const std::vector<int32_t>& replicas() const { return replicas_; }
  const std::vector<int32_t>& tensor_ranks() const { return tensor_ranks_; }

  // What routes of the folded graph name. A link that k flows of the full graph
  // cross, all of them stood for by one, is named k times by its route.
  const std::vector<Link>& links() const { return links_; }

  // A colour of uses.
  struct Colour {
    Route route;  // in links(); with the latency of the links
    // Representatives, as GPUs of the cluster, that its flows touch.
    Slowdowns::Touch touch;
    // No flow of another role crosses its links, nor of another colour.
    bool has_own_links = true;
  };
  const Colour& colour(int32_t index) const { return colours_[index]; }
  int32_t num_colours() const { return static_cast<int32_t>(colours_.size()); }

  // Into Traffic::copies. REQUIRES: it is one of these.
  int IndexOfCopies(const std::vector<int>& ranks) const;
  // Of a transfer; -1: no link joins the two.
  int32_t ColourOf(const FoldRole& role) const;
  // A group as Ways::GroupOf makes it of its first instance, but hops are
  // colours, each once.
  const Group& GroupOf(const FoldRole& role) const { return groups_.at(role); }

 private:
  friend class FoldSearch;

  Placement everybody_, representatives_;
  std::vector<int32_t> replica_class_, tensor_class_;
  std::vector<int32_t> replicas_, tensor_ranks_;  // [class]
  std::vector<Link> links_;
  std::vector<Colour> colours_;
  std::vector<std::vector<int>> copies_;
  absl::flat_hash_map<FoldRole, int32_t> sends_;
  absl::flat_hash_map<FoldRole, Group> groups_;
};

}  // namespace weir

#endif  // WEIR_SIM_FOLD_H_
