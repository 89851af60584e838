// SPDX-License-Identifier: Apache-2.0
// The operations of a step and what each of them waits for: arrays from which
// the step is replayed with other durations.
#ifndef WEIR_PLAN_STRAGGLERS_OPERATION_GRAPH_H_
#define WEIR_PLAN_STRAGGLERS_OPERATION_GRAPH_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace weir::plan {

// An operation is launched when all operations that it depends on have ended,
// after its delay. Operations of a group (a send and its receive, a collective)
// begin when all of the group are launched, others when they are launched. Each
// ends its own seconds later.
class OperationGraph {
 public:
  struct Times {
    std::vector<double> launch, end;  // [operation]
    double makespan = 0;              // the last end; 0 without operations
  };

  explicit OperationGraph(int32_t num_operations = 0)
      : num_operations_(num_operations) {}

  // The same dependency may be added twice.
  void AddDependency(int32_t before, int32_t after) {
    edges_.push_back({before, after});
  }
  // Each operation may be in one group at most.
  void AddGroup(std::vector<int32_t> members) {
    groups_.push_back(std::move(members));
  }

  // Sorts the operations. Call once, after everything was added. Returns
  // FailedPrecondition with their number if operations wait for each other.
  absl::Status Finish();

  int32_t num_operations() const { return num_operations_; }

  // Computes all times. `seconds` and `delays` have an entry per operation;
  // empty `delays`: none.
  void Run(std::span<const double> seconds, std::span<const double> delays,
           Times* times) const;

  // Returns how much later each operation may end without delaying the last
  // end, if all others keep their seconds: the total float of the critical path
  // method (Kelley and Walker, 1959).
  std::vector<double> Slack(std::span<const double> seconds,
                            std::span<const double> delays,
                            const Times& times) const;

  // Returns what each operation waited for beyond its dependencies, given its
  // recorded start: start - end of the last dependency, at least 0. Operations
  // without dependencies waited since 0.
  std::vector<double> Delays(std::span<const double> starts,
                             std::span<const double> ends) const;

  // [operation]: those it depends on. Requires: Finish().
  std::span<const int32_t> dependencies(int32_t operation) const {
    return {before_.data() + first_before_[operation],
            before_.data() + first_before_[operation + 1]};
  }
  // Operations that begin together, in an order in which none precedes its
  // dependencies. Requires: Finish().
  size_t num_sets() const { return first_of_set_.size() - 1; }
  std::span<const int32_t> set(size_t i) const {
    return {order_.data() + first_of_set_[i],
            order_.data() + first_of_set_[i + 1]};
  }

 private:
  struct Edge {
    int32_t before, after;
  };

  int32_t num_operations_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int32_t>> groups_;
  std::vector<int32_t> before_, first_before_;
  std::vector<int32_t> order_, first_of_set_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_OPERATION_GRAPH_H_
