// SPDX-License-Identifier: Apache-2.0
#include "results/import/clocks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/units.h"
#include "results/import/clock_shifts.h"
#include "results/import/event_orders.h"
#include "results/import/messages.h"

namespace weir::results {
namespace {

// Finding the shifts of more workers would take too long.
constexpr int kMaxClocks = 1024;
constexpr size_t kMaxNamedClocks = 5;
// Limits the difference between the ends of a collective, as a fraction of the
// shorter operation (at most 0.011 in ByteDance's published traces). The second
// limit applies if no shifts keep the first; it only orders starts and ends.
constexpr double kEndParts[] = {0.05, 1};

// What changes the time of the step by less than 0.1 % is ignored.
double AllowedSeconds(const RecordedStep& step) {
  return std::min(kClockSeconds, 1e-3 * step.seconds());
}

std::string NameOfWorker(const RecordedRun& run, int replica, int rank) {
  return absl::StrCat(
      "pipeline rank ", rank,
      run.num_replicas > 1 ? absl::StrCat(" of replica ", replica) : "");
}

std::string NameOfClock(const RecordedRun& run, int clock) {
  return NameOfWorker(run, clock / run.num_ranks, clock % run.num_ranks);
}

std::string Named(std::vector<std::string> names) {
  const size_t count = names.size();
  if (count > kMaxNamedClocks + 1) {
    names.resize(kMaxNamedClocks);
    names.push_back(absl::StrCat(count - kMaxNamedClocks, " others"));
  }
  return absl::StrJoin(names, ", ");
}

int ClockOf(const RecordedRun& run, const RecordedOperation& o) {
  return o.replica * run.num_ranks + o.rank;
}

// Orders of one kind that do not hold, and the one that does so most.
struct Violations {
  int64_t count = 0, total = 0;
  double seconds = 0;
  RecordedOperation first, second;

  void Add(const std::vector<EventOrder>& orders, double allowed_seconds) {
    total += static_cast<int64_t>(orders.size());
    for (const EventOrder& order : orders) {
      if (order.slack_seconds >= -allowed_seconds) continue;
      ++count;
      if (-order.slack_seconds <= seconds) continue;
      seconds = -order.slack_seconds;
      first = *order.first;
      second = *order.second;
    }
  }
};

class Clocks {
 public:
  explicit Clocks(RecordedRun* run)
      : run_(*run),
        steps_(StepsOf(*run)),
        has_messages_(HasPairs(*run)),
        num_clocks_(int64_t{run->num_replicas} * run->num_ranks) {}

  bool Differ() {
    for (const RecordedStep& step : steps_) {
      const double allowed = AllowedSeconds(step);
      const OperationGroups groups = GroupsOf(step);
      between_stages_.Add(OrdersBetweenStages(step, groups), allowed);
      between_replicas_.Add(CollectiveOrders(step, groups), allowed);
    }
    return between_stages_.count + between_replicas_.count > 0;
  }

  // Requires: Differ().
  absl::Status Repair() {
    if (num_clocks_ > kMaxClocks) {
      return CannotRepair(absl::StrCat("the run has ", num_clocks_,
                                       " workers, and clocks of at most ",
                                       kMaxClocks, " can be repaired"));
    }
    if (!run_.has_clock_of_step && ShiftAllSteps()) return absl::OkStatus();
    return ShiftEachStep();
  }

 private:
  std::vector<EventOrder> OrdersBetweenStages(
      const RecordedStep& step, const OperationGroups& groups) const {
    return has_messages_ ? MessageOrders(step, groups) : PassOrders(step);
  }

  void AddLimits(const RecordedStep& step, double part,
                 ClockLimits* limits) const {
    const OperationGroups groups = GroupsOf(step);
    for (const auto& orders : {OrdersBetweenStages(step, groups),
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
    Shift(shifts, run_.operations.data(),
          run_.operations.data() + run_.operations.size());
    Note("in all steps", shifts.seconds, shifts.seconds,
         shifts.uncertainty_seconds);
    return true;
  }

  absl::Status ShiftEachStep() {
    std::vector<ClockShifts> of_steps;
    for (const RecordedStep& step : steps_) {
      of_steps.push_back(Solve({&step, 1}));
      if (!of_steps.back().contradiction.empty()) {
        return Contradiction(step, of_steps.back());
      }
    }
    std::vector<double> least(num_clocks_, 0), most(num_clocks_, 0);
    double uncertainty = 0;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const std::vector<double>& seconds = of_steps[i].seconds;
      for (int64_t clock = 0; clock < num_clocks_; ++clock) {
        const bool is_first = i == 0;
        least[clock] =
            is_first ? seconds[clock] : std::min(least[clock], seconds[clock]);
        most[clock] =
            is_first ? seconds[clock] : std::max(most[clock], seconds[clock]);
      }
      uncertainty = std::max(uncertainty, of_steps[i].uncertainty_seconds);
      RecordedOperation* begin =
          run_.operations.data() + (steps_[i].begin - run_.operations.data());
      Shift(of_steps[i], begin, begin + steps_[i].size());
    }
    Note("within each step", least, most, uncertainty);
    return absl::OkStatus();
  }

  void Shift(const ClockShifts& shifts, RecordedOperation* begin,
             RecordedOperation* end) const {
    for (RecordedOperation* o = begin; o != end; ++o) {
      const double seconds = shifts.seconds[ClockOf(run_, *o)];
      if (seconds == 0) continue;
      o->start_seconds += seconds;
      o->end_seconds += seconds;
    }
  }

  // What shows that the clocks differ.
  std::string Evidence() const {
    std::vector<std::string> parts;
    const RecordedOperation& first = between_stages_.first;
    const RecordedOperation& second = between_stages_.second;
    const auto count = [](const Violations& violations, const char* what) {
      return absl::StrFormat("(%d of %d %s, most of all ", violations.count,
                             violations.total, what);
    };
    if (between_stages_.count > 0) {
      const std::string seconds = FormatSeconds(between_stages_.seconds);
      parts.push_back(absl::StrCat(
          has_messages_ ? absl::StrCat("messages arrive up to ", seconds,
                                       " before they are sent ")
                        : absl::StrCat("passes start up to ", seconds,
                                       " before the stage before them ends the "
                                       "microbatch "),
          count(between_stages_, has_messages_ ? "messages" : "passes"), "the ",
          NameOf(second.kind), " of microbatch ", second.microbatch, " on ",
          NameOfWorker(run_, second.replica, second.rank), ", after rank ",
          first.rank, ", in step ", second.step, ")"));
    }
    if (between_replicas_.count > 0) {
      const RecordedOperation& started = between_replicas_.first;
      const RecordedOperation& ended = between_replicas_.second;
      parts.push_back(absl::StrCat(
          "collectives end up to ", FormatSeconds(between_replicas_.seconds),
          " before another replica starts them ",
          count(between_replicas_, "collectives"), "the ", NameOf(ended.kind),
          " on ", NameOfWorker(run_, ended.replica, ended.rank),
          ", before replica ", started.replica, ", in step ", ended.step, ")"));
    }
    return absl::StrJoin(parts, ", and ");
  }

  void Note(const char* when, const std::vector<double>& least,
            const std::vector<double>& most, double uncertainty_seconds) {
    // [seconds, as text]: clocks
    std::map<std::string, std::vector<std::string>> moved;
    for (int clock = 0; clock < num_clocks_; ++clock) {
      if (least[clock] == 0 && most[clock] == 0) continue;
      const std::string seconds =
          least[clock] == most[clock]
              ? absl::StrFormat("%+.6g ms", 1e3 * least[clock])
              : absl::StrFormat("%+.6g to %+.6g ms", 1e3 * least[clock],
                                1e3 * most[clock]);
      moved[seconds].push_back(NameOfClock(run_, clock));
    }
    std::vector<std::string> moves;
    for (const auto& move : moved) {
      moves.push_back(absl::StrCat(move.first, " (", Named(move.second), ")"));
    }
    std::string note = absl::StrCat(
        Evidence(), ": the clocks of the workers differ. All times are moved ",
        when, " by ", Named(moves), ". Assumed: clocks differ by a constant ",
        when,
        "; those that may agree do; the fastest transfer between two workers "
        "takes as long in both directions; collectives end at once. ");
    if (std::isinf(uncertainty_seconds)) {
      absl::StrAppend(&note,
                      "Some workers wait for others but not the reverse: "
                      "their fastest transfer is taken as 0 s");
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

  absl::Status Contradiction(const RecordedStep& step,
                             const ClockShifts& shifts) {
    std::vector<std::string> names;
    for (const int clock : shifts.contradiction) {
      names.push_back(NameOfClock(run_, clock));
    }
    return CannotRepair(absl::StrFormat(
        "in step %d, each of %s has an event that precedes one of the next, "
        "and the last one of the first; whatever constant is added to each "
        "clock, one of these is at least %s too early",
        step.step, Named(names), FormatSeconds(shifts.contradiction_seconds)));
  }

  absl::Status CannotRepair(const std::string& why) {
    if (!run_.has_early_passes) {
      return absl::InvalidArgumentError(absl::StrCat(
          run_.label, ": ", Evidence(), ", and this cannot be repaired: ", why,
          ". Expected times of clocks that differ by a constant"));
    }
    run_.notes.push_back(absl::StrCat(
        Evidence(),
        ": the clocks of the ranks differ, or the times are those of launches "
        "or of another rank. They are kept, so that step and idle times are "
        "unreliable"));
    return absl::OkStatus();
  }

  RecordedRun& run_;
  const std::vector<RecordedStep> steps_;
  const bool has_messages_;
  const int64_t num_clocks_;
  Violations between_stages_, between_replicas_;
  // The largest tolerance without which the orders contradict each other.
  double violated_seconds_ = 0;
};

}  // namespace

absl::Status RepairClocks(RecordedRun* run) {
  Clocks clocks(run);
  if (!clocks.Differ()) return absl::OkStatus();
  return clocks.Repair();
}

}  // namespace weir::results
