// SPDX-License-Identifier: Apache-2.0
// One GPU for all that provably do the same: of every pipeline rank one stands
// for a class of replicas and a class of tensor ranks, all of them if it can
// be.
//
// A "use" is a hop that a flow can take. It is part of an instance (a transfer
// from one GPU to another, the collective of one group), and instances that
// stand for each other in the folded graph have one role. Uses and links are
// coloured.
//
// Theorem. Suppose that, checked by numbers and not by hashes,
//  1. links of one colour have one rate and are crossed by equally many uses of
//     each colour;
//  2. uses of one colour have one latency and cross equally many links of each
//     colour, and all are of one role;
//  3. instances of one role have the same colours and are priced alike (rings,
//     rates, latency, kind of wire, leaf switch or not);
//  4. GPUs of one class are of one device, and where flows slow passes down
//     they are touched by flows of the same colours;
// and, of the task graph, not checked here, that
//  5. tasks wait for tasks only: nothing is decided by what comes first;
//  6. what a task takes and waits for follows from its role, or its action and
//     the class of its GPU, and every flow takes a use of the network's;
//  7. all flows under way share links max-min fairly.
// Then what one task stands for starts and ends at one time in the full run,
// and the folded graph has these times, if of every colour of links there is
// one on which a flow counts as often as flows of its colour cross each of
// them.
//
// Proof, by induction over time. What has one predecessor in the folded graph
// has equal ones in the full graph, which have ended together: so flows of one
// colour start together, and passes of a class. Max-min fairness raises all
// rates alike until links saturate: by 1 and 2 links of a colour carry the same
// and saturate together, and flows of a colour stop growing together. So their
// rates are equal at all times, they end together, and by 3, 4 and 6 equal
// tasks follow. The folded links say for each colour of links what one of them
// says.
//
// No automorphism of the cluster is needed, only equal counts
// (docs/decisions/0018). Times are real numbers here: the rounding of two runs
// differs, and where two things happen at one moment so may their order, which
// matters to nothing but what is in memory at that moment (sim/memory.cc).
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
  absl::flat_hash_map<std::vector<int>, int> copies_index_;
  absl::flat_hash_map<FoldRole, int32_t> sends_;
  absl::flat_hash_map<FoldRole, Group> groups_;
};

}  // namespace weir

#endif  // WEIR_SIM_FOLD_H_
