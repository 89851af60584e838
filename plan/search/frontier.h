// SPDX-License-Identifier: Apache-2.0
// The open entries of a search, and the order in which they are taken.
//
// Bounds are cheap, so entries to be bounded are taken in the order of the
// bound that they already have. Ranked runs are expensive, and bounds are not
// equally tight everywhere: the bounds of a hundred candidates of one layout
// may all be too low by the same factor. Therefore entries to be ranked are
// grouped into families (layout, chunks, kind of schedule), and families are
// ordered by an estimate: the lowest bound in the family times a ratio of
// ranked time to bound, which is the lowest so far in the family, else in its
// layout, else 1. A round takes a few entries of each family, so the limit on
// runs without improvement (--patience) is not used up by one family. Entries
// to be bounded whose bound does not exceed the best estimate are taken first.
#ifndef WEIR_PLAN_SEARCH_FRONTIER_H_
#define WEIR_PLAN_SEARCH_FRONTIER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/search/ranked_plan.h"
#include "plan/search/space.h"

namespace weir::plan {

// A shape with all its schedules (`schedule` is -1), or one candidate.
struct OpenEntry {
  enum class State : int8_t { kShape, kCandidate, kBounded };
  Score key;
  int shape = 0;     // index in the space, with variants; -1: not in it
  int schedule = 0;  // index among the shape's schedules
  int seed = -1;     // index among the seeds; -1: no seed
  State state = State::kShape;
  bool is_estimated = true;  // false: a variant whose bounds are its parent's
  double lower_bound_seconds = 0;
  double seconds = 0, bytes = 0;  // lower bounds, also the next
  double active_joules = 0;       // see SearchEstimate
  bool operator<(const OpenEntry& other) const {
    return std::tie(key, shape, schedule, seed, state) <
           std::tie(other.key, other.shape, other.schedule, other.seed,
                    other.state);
  }
};

class Frontier {
 public:
  // `space` must outlive the frontier. `each_may_lead`: as in a Pareto front,
  // an entry may be beaten even though a later one is not.
  Frontier(const Space& space, bool each_may_lead)
      : space_(space), each_may_lead_(each_may_lead) {}

  void Insert(const OpenEntry& entry);
  // Records the key that ranking gave to an entry.
  void RecordKey(const OpenEntry& entry, const Score& key);

  // Returns the work of the next round: entries to be bounded, at most
  // `num_bounds` shapes and `num_bounds` candidates, or else at most
  // `num_ranks` entries to be ranked. `ranks_first`: these come first, even if
  // entries to be bounded have lower bounds. Returns an empty vector if all
  // entries left are beaten.
  std::vector<OpenEntry> NextRound(
      size_t num_bounds, size_t num_ranks, bool ranks_first,
      const std::function<bool(const OpenEntry&)>& is_beaten);

  // Makes beaten entries available again.
  void Reopen();
  // Returns the lowest first component of any key, infinity if there is none.
  double LeastKey() const;
  // Returns the number of entries with a key below `limit`, by state. Beaten
  // entries are not counted.
  std::array<uint64_t, 3> CountBelow(const Score& limit) const;
  void ForEach(const std::function<void(const OpenEntry&)>& visit) const;

 private:
  // Sizes, order, sharding, sequence parallelism, mode of reductions and
  // variant.
  using Layout = std::tuple<int, int, int, int, int, int, int, std::string,
                            Sharding, bool, ReductionMode, int>;
  using Family = std::tuple<Layout, int, std::string>;  // chunks, schedule

  Family FamilyOf(const OpenEntry& entry) const;
  double EstimateOf(const Family& family, const OpenEntry& first) const;

  const Space& space_;
  const bool each_may_lead_;
  std::set<OpenEntry> to_bound_;
  std::map<Family, std::set<OpenEntry>> to_rank_;
  std::vector<OpenEntry> beaten_;  // may be reopened
  // Least ratio of a ranked key to its bound.
  std::map<Family, double> of_family_;
  std::map<Layout, double> of_layout_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_FRONTIER_H_
