// SPDX-License-Identifier: Apache-2.0
#include "results/import/clocks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "results/import/clock_evidence.h"
#include "results/import/clock_moves.h"
#include "results/import/clock_shifts.h"
#include "results/import/event_orders.h"
#include "results/import/linked_clocks.h"
#include "results/import/messages.h"
#include "results/import/unlinked_clocks.h"
#include "results/import/worker_names.h"

namespace weir::results {
namespace {

// Finding the shifts of more workers would take too long.
constexpr int kMaxClocks = 1024;
// Limits the difference between the ends of a collective, as a fraction of the
// shorter operation (at most 0.011 in ByteDance's published traces). The second
// limit applies if no shifts keep the first; it only orders starts and ends.
constexpr double kEndParts[] = {0.05, 1};

int ClockOf(const RecordedRun& run, const RecordedOperation& o) {
  return o.replica * run.num_ranks + o.rank;
}

class Clocks {
 public:
  explicit Clocks(RecordedRun* run)
      : run_(*run),
        steps_(StepsOf(*run)),
        num_clocks_(int64_t{run->num_replicas} * run->num_ranks),
        linked_(static_cast<int>(num_clocks_)),
        moves_(steps_.size(), static_cast<int>(num_clocks_)) {}

  bool Differ() {
    for (const RecordedStep& step : steps_) {
      const double allowed = AllowedSeconds(step);
      const OperationGroups groups = GroupsOf(step);
      const std::vector<EventOrder> messages = MessageOrders(step, groups);
      const std::vector<EventOrder> passes = PassOrders(step);
      evidence_.messages.AddOrders(messages, allowed);
      evidence_.passes.AddOrders(passes, allowed);
      evidence_.collectives.AddOrders(CollectiveOrders(step, groups), allowed);
      for (const auto* orders : {&messages, &passes}) {
        for (const EventOrder& order : *orders) {
          linked_.Link(ClockOf(run_, *order.first),
                       ClockOf(run_, *order.second));
        }
      }
      for (const std::vector<int32_t>& members : groups.members) {
        if (!IsOverReplicas(step.begin[members[0]].kind)) continue;
        for (const int32_t i : members) {
          linked_.Link(ClockOf(run_, step.begin[members[0]]),
                       ClockOf(run_, step.begin[i]));
        }
      }
    }
    return !evidence_.empty();
  }

  // Returns whether linked clocks agree then; if not, they are kept. Requires:
  // Differ().
  absl::StatusOr<bool> Repair() {
    if (num_clocks_ > kMaxClocks) {
      RETURN_IF_ERROR(CannotRepair(absl::StrCat(
          "the run has ", num_clocks_, " workers, and clocks of at most ",
          kMaxClocks, " can be repaired")));
      return false;
    }
    if (run_.has_clock_of_step || !ShiftAllSteps()) {
      ASSIGN_OR_RETURN(const bool agree, ShiftEachStep());
      if (!agree) return false;
    }
    Apply(moves_);
    return true;
  }

  // Requires: Differ() was called, and the clocks that it links agree.
  void Align() {
    ClockMoves aligned(steps_.size(), static_cast<int>(num_clocks_));
    std::string note = AlignUnlinked(run_, steps_, linked_.Sets(), &aligned);
    if (!note.empty()) {
      run_.notes.push_back(std::move(note));
      Apply(aligned);
      moves_.Add(aligned);
    }
    run_.moved_clocks = moves_.Shifts(run_);
  }

 private:
  void AddLimits(const RecordedStep& step, double part,
                 ClockLimits* limits) const {
    const OperationGroups groups = GroupsOf(step);
    for (const auto& orders : {MessageOrders(step, groups), PassOrders(step),
                               CollectiveEndOrders(step, groups, part)}) {
      for (const EventOrder& order : orders) {
        limits->AddOrder(ClockOf(run_, *order.first),
                         ClockOf(run_, *order.second), order.slack_seconds);
      }
    }
  }

  // Returns shifts that keep all limits of the steps, if need be with the
  // allowed violation.
  ClockShifts Solve(absl::Span<const RecordedStep> steps) {
    double allowed = kClockSeconds;
    for (const RecordedStep& step : steps) {
      allowed = std::min(allowed, AllowedSeconds(step));
    }
    ClockShifts shifts;
    for (const double part : kEndParts) {
      ClockLimits limits(static_cast<int>(num_clocks_));
      for (const RecordedStep& step : steps) AddLimits(step, part, &limits);
      shifts = SolveClocks(limits);
      if (shifts.contradiction.empty()) return shifts;
      shifts = SolveClocks(limits.Relaxed(allowed));
      if (shifts.contradiction.empty()) {
        violated_seconds_ = std::max(violated_seconds_, allowed);
        return shifts;
      }
      shifts.contradiction_seconds += allowed;
    }
    return shifts;
  }

  bool ShiftAllSteps() {
    const ClockShifts shifts = Solve(steps_);
    if (!shifts.contradiction.empty()) return false;
    for (size_t i = 0; i < steps_.size(); ++i) Move(i, shifts);
    Note("in all steps", shifts.uncertainty_seconds);
    return true;
  }

  absl::StatusOr<bool> ShiftEachStep() {
    double uncertainty = 0;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const ClockShifts shifts = Solve({&steps_[i], 1});
      if (!shifts.contradiction.empty()) {
        moves_ = ClockMoves(steps_.size(), static_cast<int>(num_clocks_));
        RETURN_IF_ERROR(Contradiction(steps_[i], shifts));
        return false;
      }
      Move(i, shifts);
      uncertainty = std::max(uncertainty, shifts.uncertainty_seconds);
    }
    Note("within each step", uncertainty);
    return true;
  }

  void Move(size_t step, const ClockShifts& shifts) {
    for (int clock = 0; clock < num_clocks_; ++clock) {
      moves_.Add(step, clock, shifts.seconds[clock]);
    }
  }

  void Note(const char* when, double uncertainty_seconds) {
    std::string note = absl::StrCat(
        evidence_.Text(run_),
        ": the clocks of the workers differ. All times are moved ", when,
        " by ", moves_.Text(run_), ". Assumed: clocks differ by a constant ",
        when,
        "; those that may agree do; the fastest transfer between two workers "
        "takes as long in both directions; collectives end at once. ");
    if (std::isinf(uncertainty_seconds)) {
      absl::StrAppend(&note,
                      "Some workers wait for others but not the reverse: "
                      "their fastest transfer is taken as 0 s, and the step "
                      "may seem longer than it was");
    } else {
      absl::StrAppendFormat(
          &note,
          "If the other clocks are right, moves are within %s of the true "
          "ones however long transfers take",
          FormatSeconds(uncertainty_seconds));
    }
    if (violated_seconds_ > 0) {
      absl::StrAppendFormat(
          &note, ". Events are still up to %s too early, which is ignored",
          FormatSeconds(violated_seconds_));
    }
    run_.notes.push_back(std::move(note));
  }

  void Apply(const ClockMoves& moves) {
    RecordedOperation* o = run_.operations.data();
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (size_t left = steps_[i].size(); left > 0; --left, ++o) {
        const double seconds = moves.Of(i, ClockOf(run_, *o));
        if (seconds == 0) continue;
        o->start_seconds += seconds;
        o->end_seconds += seconds;
      }
    }
  }

  absl::Status Contradiction(const RecordedStep& step,
                             const ClockShifts& shifts) {
    return CannotRepair(absl::StrFormat(
        "in step %d, each of %s has an event that precedes one of the next, "
        "and the last one of the first; whatever constant is added to each "
        "clock, one of these is at least %s too early",
        step.step, NamedClocks(run_, shifts.contradiction),
        FormatSeconds(shifts.contradiction_seconds)));
  }

  absl::Status CannotRepair(const std::string& why) {
    if (!run_.has_early_passes) {
      return absl::InvalidArgumentError(
          absl::StrCat(run_.label, ": ", evidence_.Text(run_),
                       ", and this cannot be repaired: ", why,
                       ". Expected times of clocks that differ by a constant"));
    }
    run_.notes.push_back(absl::StrCat(
        evidence_.Text(run_),
        ": the clocks of the ranks differ, or the times are those of launches "
        "or of another rank. They are kept, so that step and idle times are "
        "unreliable"));
    return absl::OkStatus();
  }

  RecordedRun& run_;
  const std::vector<RecordedStep> steps_;
  const int64_t num_clocks_;
  LinkedClocks linked_;
  ClockEvidence evidence_;
  ClockMoves moves_;
  // The largest tolerance without which the orders contradict each other.
  double violated_seconds_ = 0;
};

}  // namespace

double AllowedSeconds(const RecordedStep& step) {
  return std::min(kClockSeconds, 1e-3 * step.seconds());
}

absl::Status RepairClocks(RecordedRun* run) {
  Clocks clocks(run);
  if (clocks.Differ()) {
    ASSIGN_OR_RETURN(const bool agree, clocks.Repair());
    if (!agree) return absl::OkStatus();
  }
  clocks.Align();
  return absl::OkStatus();
}

}  // namespace weir::results
