// SPDX-License-Identifier: Apache-2.0
// Helpers to check closed forms: times from the longest path, counts of
// activations, and orders as text.
#ifndef WEIR_TESTS_SCHEDULES_CLOSED_FORM_H_
#define WEIR_TESTS_SCHEDULES_CLOSED_FORM_H_

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "schedules/registry.h"
#include "schedules/validate.h"
#include "schedules/walk.h"

namespace weir::schedules {

// Generates and validates a schedule.
inline Schedule Valid(absl::string_view name, const ScheduleSpec& spec) {
  absl::StatusOr<Schedule> schedule = GenerateSchedule(name, spec);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_TRUE(ValidateSchedule(*schedule).ok()) << ValidateSchedule(*schedule);
  return *std::move(schedule);
}

// Seconds of one microbatch on one rank, divided equally among its stages.
struct RankSeconds {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  double hop = 0;
};

inline PassCosts CostsOf(const Schedule& schedule, const RankSeconds& seconds) {
  const double chunks =
      static_cast<double>(schedule.num_stages) / schedule.num_ranks;
  StagePassCosts stage;
  stage.forward = seconds.forward / chunks;
  stage.backward_input = seconds.backward_input / chunks;
  stage.backward_weight = seconds.backward_weight / chunks;
  return {{stage}, seconds.hop};
}

inline double Makespan(const Schedule& schedule, const RankSeconds& seconds) {
  return TimedWalk(schedule, CostsOf(schedule, seconds)).makespan();
}

// Returns the makespan with a given backward time. I and W take half of it each
// if the backward is split.
inline double Makespan(const Schedule& schedule, double forward,
                       double backward, double hop = 0) {
  return Makespan(schedule, {forward, backward / 2, backward / 2, hop});
}

inline void ExpectClose(double found, double expected) {
  EXPECT_NEAR(found, expected, 1e-9 * std::max(1.0, expected));
}

// Returns the largest number of microbatches, summed over the rank's stages,
// between the forward and the end of the input gradient. In an overlapped pair,
// the forward is counted before the backward frees.
inline int PeakActivations(const Schedule& schedule, int rank) {
  int live = 0, peak = 0;
  for (const Action& action : schedule.rank_actions[rank]) {
    if (action.op == Op::kForward) live += action.num_microbatches;
    if (MakesInputGradient(action.op)) live -= action.num_microbatches;
    peak = std::max(peak, live);
  }
  return peak;
}

// Returns the largest number of microbatches on a rank between I and W.
inline int PeakDeferredWeights(const Schedule& schedule, int rank) {
  int live = 0, peak = 0;
  for (const Action& action : schedule.rank_actions[rank]) {
    if (action.op == Op::kBackwardInput) live += action.num_microbatches;
    if (action.op == Op::kBackwardWeight) live -= action.num_microbatches;
    peak = std::max(peak, live);
  }
  return peak;
}

// Returns a rank's order with its overlapped pairs, such as "0F0 0F1
// (0F2;3B0)".
inline std::string RowOf(const Schedule& schedule, int rank) {
  std::string row;
  bool in_pair = false;
  for (const Action& action : schedule.rank_actions[rank]) {
    absl::StrAppend(&row, row.empty() || in_pair ? "" : " ",
                    action.overlaps_next ? "(" : "", ToString(action),
                    action.overlaps_next ? ";"
                    : in_pair            ? ")"
                                         : "");
    in_pair = action.overlaps_next;
  }
  return row;
}

inline std::string ErrorOf(absl::string_view name, const ScheduleSpec& spec) {
  return std::string(GenerateSchedule(name, spec).status().message());
}

}  // namespace weir::schedules

#endif  // WEIR_TESTS_SCHEDULES_CLOSED_FORM_H_
