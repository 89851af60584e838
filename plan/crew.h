// SPDX-License-Identifier: Apache-2.0
// The worker processes of a search: many questions, answers in their order.
#ifndef WEIR_PLAN_CREW_H_
#define WEIR_PLAN_CREW_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/processes.h"
#include "plan/search_work.pb.h"
#include "plan/space.h"

namespace weir {

class Crew {
 public:
  // `space` must outlive it.
  Crew(const Space& space, int num_processes);

  // Sets what is called about ten times a second while answers are awaited.
  void set_tick(std::function<void()> tick) { tick_ = std::move(tick); }

  // One answer for each, whatever the number of processes. What takes a process
  // down is a problem of its figures. Cancelled when interrupted, Unavailable
  // when the machine gives no processes.
  absl::StatusOr<std::vector<SearchFigures>> OfShapes();
  absl::StatusOr<std::vector<SearchFigures>> Bounds(
      const std::vector<Scenario>& scenarios);
  absl::StatusOr<std::vector<SearchFigures>> Orders(
      const std::vector<Scenario>& scenarios);
  absl::StatusOr<std::vector<SearchFigures>> Ranks(
      const std::vector<Scenario>& scenarios);

 private:
  absl::StatusOr<std::vector<SearchFigures>> Ask(
      const std::vector<SearchJob>& jobs);

  const Space& space_;
  Workers workers_;
  std::function<void()> tick_;
};

}  // namespace weir

#endif  // WEIR_PLAN_CREW_H_
