// SPDX-License-Identifier: Apache-2.0
// Chooses the differences of clocks within their limits.
#ifndef WEIR_RESULTS_IMPORT_CLOCK_GROUPS_H_
#define WEIR_RESULTS_IMPORT_CLOCK_GROUPS_H_

#include <cstddef>
#include <vector>

#include "results/import/difference_limits.h"

namespace weir::results {

// Clocks in groups, each with known differences. At first every clock is alone.
// The limits between groups are kept closed, so that every difference within
// them can be chosen.
class ClockGroups {
 public:
  // Requires: `closed` was closed.
  explicit ClockGroups(const DifferenceLimits& closed);

  // Joins the two groups that come next, until one is left, and returns the
  // shifts relative to its first clock. Next are those whose difference has
  // limits in both directions, the narrowest first; of equally narrow ones
  // those that are nearest to equal clocks. Clocks that may be equal become
  // equal, others take the middle, or the limit if there is only one.
  // Requires: limits link all clocks. Time is the cube of their number.
  std::vector<double> JoinAll();

 private:
  // A clock of a group, relative to the group.
  struct Member {
    int clock = 0;
    double ahead = 0;
  };
  struct Group {
    std::vector<Member> members;
    // One of those with the same difference.
    std::vector<Member> distinct;
  };
  // Which groups to join, and x[v] - x[u] for their shifts.
  struct Join {
    int u = -1, v = -1;
    double difference = 0;
  };

  // x[i] - x[j] <= Limit(i, j), of groups.
  double& Limit(int i, int j) {
    return i < j ? below_[Index(i, j)] : above_[Index(j, i)];
  }
  size_t Index(int i, int j) const {
    return static_cast<size_t>(i) * stride_ + j;
  }
  int size() const { return static_cast<int>(groups_.size()); }

  Join Next();
  void Apply(const Join& join);
  // Limits that follow from joined groups: x[i] - x[j] <= to[i] + from[j].
  // Also finds the narrowest pair of each row.
  void Tighten(const std::vector<double>& to, const std::vector<double>& from);
  // Removes the group, in the place of which the last one moves.
  void Remove(int v);

  const int stride_;
  std::vector<Group> groups_;
  // Limits of x[i] - x[j] and of x[j] - x[i], at Index(i, j) for i < j. Two
  // triangles are read and written row by row, which is several times as fast
  // as one square.
  std::vector<double> below_, above_;
  // [i]: the least sum of both limits with a later group.
  std::vector<double> narrowest_;
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_CLOCK_GROUPS_H_
