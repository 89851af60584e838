// SPDX-License-Identifier: Apache-2.0
// The worker processes of a search.
#ifndef WEIR_PLAN_SEARCH_SEARCH_WORKERS_H_
#define WEIR_PLAN_SEARCH_SEARCH_WORKERS_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/infinity.h"
#include "base/worker_pool.h"
#include "plan/search/joint_search.h"
#include "plan/search/search_work.pb.h"
#include "plan/search/space.h"

namespace weir::plan {

class SearchWorkers {
 public:
  // `space` and `options` must outlive this object.
  SearchWorkers(const Space& space, const SearchOptions& options);

  // Sets a callback that runs about ten times a second while waiting for
  // answers.
  void set_tick(std::function<void()> tick) { tick_ = std::move(tick); }

  // Each returns one answer per input, in order, for any number of processes.
  // The estimates of an input that crashes its process have a problem. Returns
  // Cancelled when interrupted or out of time, and Unavailable if the machine
  // cannot start processes.
  absl::StatusOr<std::vector<SearchEstimate>> OfShapes();
  // Estimates shapes and variants, given by their index in the space.
  absl::StatusOr<std::vector<SearchEstimate>> OfShapes(
      const std::vector<int>& indices);
  // Scenarios that need more than `limit_bytes` get no bound on the time.
  absl::StatusOr<std::vector<SearchEstimate>> Bounds(
      const std::vector<Scenario>& scenarios, double limit_bytes = kInfinity);
  absl::StatusOr<std::vector<SearchEstimate>> Orders(
      const std::vector<Scenario>& scenarios);
  absl::StatusOr<std::vector<SearchEstimate>> Ranks(
      const std::vector<Scenario>& scenarios);

 private:
  absl::StatusOr<std::vector<SearchEstimate>> RunJobs(
      const std::vector<SearchJob>& jobs);

  const Space& space_;
  const SearchOptions& options_;
  Workers workers_;
  std::function<void()> tick_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_SEARCH_WORKERS_H_
