// SPDX-License-Identifier: Apache-2.0
// What a search has not looked at yet, and what of it comes next.
//
// Bounds are cheap: what is to be bounded comes in the order of the bounds that
// it has. Ranked runs are dear, and bounds are not equally good everywhere: a
// hundred candidates of one layout may all look better than they are, by the
// same part. So what is to be ranked is in families (layout, chunks, kind of
// schedule), and these come in the order of an estimate: the least bound in the
// family times what was ranked over its bound, the least so far of the family,
// else of its layout, else 1. A round takes a share of each, so that patience
// is spent on many. What is bounded at less than the best estimate goes before
// it.
#ifndef WEIR_PLAN_FRONTIER_H_
#define WEIR_PLAN_FRONTIER_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/found.h"
#include "plan/space.h"

namespace weir {

// A shape with all its schedules (-1), or one candidate.
struct OpenEntry {
  enum class State : int8_t { kShape, kCandidate, kBounded };
  Score key;
  int shape = 0;     // -1: not in the space
  int schedule = 0;  // of the shape's
  int seed = -1;     // of the seeds; -1: none
  State state = State::kShape;
  double lower_bound_seconds = 0;
  double seconds = 0, bytes = 0;  // at least
  bool operator<(const OpenEntry& other) const {
    return std::tie(key, shape, schedule, seed, state) <
           std::tie(other.key, other.shape, other.schedule, other.seed,
                    other.state);
  }
};

class Frontier {
 public:
  // It must outlive this. `each_may_lead`: an entry may be beaten though one
  // behind it is not, as in a Pareto front.
  Frontier(const Space& space, bool each_may_lead)
      : space_(space), each_may_lead_(each_may_lead) {}

  void Insert(const OpenEntry& entry);
  // What ranking an entry has made of its key.
  void Ranked(const OpenEntry& entry, const Score& key);

  // The next round's work: entries to be bounded, at most so many of shapes and
  // of candidates; or else bounded ones to be ranked. None: all that is left is
  // beaten.
  std::vector<OpenEntry> Take(
      size_t num_bounds, size_t num_ranks,
      const std::function<bool(const OpenEntry&)>& is_beaten);

  // Looks again at what was beaten.
  void Reopen();
  void ForEach(const std::function<void(const OpenEntry&)>& visit) const;

 private:
  // Sizes, order and sharding of a layout.
  using Layout = std::tuple<int, int, int, int, std::string, Sharding>;
  using Family = std::tuple<Layout, int, std::string>;  // chunks, schedule

  Family FamilyOf(const OpenEntry& entry) const;
  double EstimateOf(const Family& family, const OpenEntry& first) const;

  const Space& space_;
  const bool each_may_lead_;
  std::set<OpenEntry> to_bound_;
  std::map<Family, std::set<OpenEntry>> to_rank_;
  std::vector<OpenEntry> beaten_;  // for now
  // Least of what was ranked over its bound.
  std::map<Family, double> of_family_;
  std::map<Layout, double> of_layout_;
};

}  // namespace weir

#endif  // WEIR_PLAN_FRONTIER_H_
