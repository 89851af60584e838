// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/frequency_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "plan/energy/time_energy_frontier.h"

namespace weir::plan {
namespace {

constexpr double kMostTicks = 1e17;
constexpr int kCappedDeadlines = 101;
// Plans between which others are joined: their distance relative to the longest
// iteration is one part in kMostSupports, or more if all of them would have
// more than kSupportPasses passes.
constexpr int kMostSupports = 2000;
constexpr int kSupportPasses = 1'000'000;
constexpr double kCappedStep = 0.001;

absl::Status CheckRequest(const FrequencyRequest& request) {
  Problems problems("command line");
  problems.CheckRange("--blocking-power", request.blocking_watts, 0, 1e7);
  if (request.unit_seconds != 0) {
    problems.CheckRange("--unit-seconds", request.unit_seconds, 1e-9, 1e3);
  }
  for (const double deadline : request.deadlines) {
    problems.CheckRange("--deadlines", deadline, 1e-9, 1e9);
  }
  for (const double factor : request.stragglers) {
    problems.CheckRange("--stragglers", factor, 1, 1000);
  }
  problems.CheckRange("--power-cap", request.most_watts, 0, 1e9);
  problems.CheckRange("--points", request.num_deadlines, 1, 100'000);
  // A longer unit would lengthen passes.
  double shortest = std::numeric_limits<double>::infinity();
  for (const auto& [key, points] : request.profile.passes) {
    for (const ClockPoint& point : points) {
      shortest = std::min(shortest, point.seconds);
    }
  }
  if (request.unit_seconds > shortest) {
    problems.Add(
        "--unit-seconds",
        absl::StrFormat("is %.12g, expected at most %.12g, the shortest "
                        "pass of the profile (after --time-scale)",
                        request.unit_seconds, shortest));
  }
  return problems.ToStatus();
}

// Returns a scale with which sums of durations do not overflow.
TickScale ScaleOf(const FrequencyRequest& request) {
  double seconds = 0;
  for (const auto& actions : request.schedule.rank_actions) {
    for (const schedules::Action& action : actions) {
      const auto points =
          request.profile.passes.find({action.stage, action.op});
      if (points == request.profile.passes.end()) continue;
      double longest = request.unit_seconds;
      for (const ClockPoint& point : points->second) {
        longest = std::max(longest, point.seconds);
      }
      seconds += longest * action.num_microbatches;
    }
  }
  TickScale scale;
  scale.unit_seconds = request.unit_seconds;
  while (seconds * scale.ticks_per_second > kMostTicks) {
    scale.ticks_per_second /= 10;
  }
  return scale;
}

// A deadline and where its point goes.
struct Wanted {
  Ticks ticks = 0;
  FrequencyPoint* point = nullptr;
};

class FrequencyPlanner {
 public:
  FrequencyPlanner(FrequencyReport* report, const TickScale& scale)
      : report_(*report), scale_(scale) {}

  absl::Status Run(const std::function<void(double)>& progress) {
    SetBaseline();
    RETURN_IF_ERROR(FindRange(progress));
    const std::vector<double> deadlines = Deadlines();
    report_.points.resize(deadlines.size());
    std::vector<Wanted> wanted;
    for (size_t i = 0; i < deadlines.size(); ++i) {
      report_.points[i].deadline_seconds = deadlines[i];
      // Longer than `least_` no plan has less energy.
      wanted.push_back(
          {std::min(Clamp(deadlines[i]), least_), &report_.points[i]});
    }
    AddStragglers(&wanted);
    std::vector<FrequencyPoint> capped;
    if (report_.request.most_watts > 0) {
      RETURN_IF_ERROR(AddCapped(&capped, &wanted));
    }
    report_.fastest.deadline_seconds = scale_.SecondsOf(shortest_);
    report_.least.deadline_seconds = scale_.SecondsOf(least_);
    wanted.push_back({shortest_, &report_.fastest});
    wanted.push_back({least_, &report_.least});
    RETURN_IF_ERROR(FillPoints(std::move(wanted), progress));
    KeepBetterPlans();
    KeepFirstWithin(std::move(capped));
    for (StragglerPoint& straggler : report_.stragglers) Wait(&straggler);
    // Thousands of plans would take much memory.
    if (report_.points.size() > 1) {
      for (FrequencyPoint& point : report_.points) point.plan.clocks = {};
    }
    return absl::OkStatus();
  }

 private:
  const PassGraph& graph() const { return report_.graph; }
  double watts() const { return report_.request.blocking_watts; }

  // Energy of all ranks during an iteration if they waited all the time.
  double WaitingJoules(double seconds) const {
    return watts() * graph().num_ranks * seconds;
  }

  void SetBaseline() {
    const ClockPlan top = TopClocks(graph());
    report_.baseline_seconds = scale_.SecondsOf(top.ticks);
    report_.baseline_joules =
        top.added_joules + WaitingJoules(report_.baseline_seconds);
    report_.measured_baseline_seconds = top.seconds;
    report_.measured_baseline_joules =
        top.JoulesIn(top.seconds, graph().num_ranks, watts());
    baseline_added_joules_ = top.added_joules;
  }

  // Finds the ends of the frontier and its least energy, which is where the
  // slope first exceeds what waiting GPUs take, and the supports.
  absl::Status FindRange(const std::function<void(double)>& progress) {
    const double waiting =
        graph().slopes_per_watt * watts() * graph().num_ranks;
    const auto num_passes = static_cast<int64_t>(graph().passes.size());
    const Ticks num_supports = std::clamp<Ticks>(
        kSupportPasses / std::max<Ticks>(num_passes, 1), 1, kMostSupports);
    bool found_least = false;
    Ticks next = 0;
    std::vector<Ticks> times;
    RETURN_IF_ERROR(WalkFrontier(graph(), [&](const FrontierPiece& piece) {
      if (report_.num_pieces++ == 0) next = longest_ = piece.longest;
      for (; next >= piece.shortest; next -= longest_ / num_supports + 1) {
        AddSupport(ChooseClocks(graph(),
                                piece.TimesAt(std::min(next, piece.longest))));
      }
      times = piece.TimesAt(piece.shortest);
      if (!found_least && static_cast<double>(piece.slope) > waiting) {
        found_least = true;
        least_ = piece.longest;
      }
      shortest_ = piece.shortest;
      if (progress) {
        // A guess: passes are rarely half as long at the highest clock.
        progress(std::min(1.0, 1.0 * static_cast<double>(longest_ - shortest_) /
                                   (0.5 * static_cast<double>(longest_))));
      }
      return true;
    }));
    if (report_.num_pieces == 0) {
      longest_ = shortest_ = OnlyLength();
    } else {
      AddSupport(ChooseClocks(graph(), times));
    }
    if (!found_least) least_ = shortest_;
    return absl::OkStatus();
  }

  // Returns the length of an iteration that no clock changes.
  Ticks OnlyLength() const { return SlowestTimes()[graph().sink]; }

  std::vector<Ticks> SlowestTimes() const {
    std::vector<Ticks> durations;
    for (int pass = 0; pass < static_cast<int>(graph().passes.size()); ++pass) {
      durations.push_back(graph().CurveOfPass(pass).longest());
    }
    return graph().EarliestTimes(durations);
  }

  Ticks Clamp(double seconds) const {
    const double ticks = std::round(seconds * scale_.ticks_per_second);
    return static_cast<Ticks>(std::clamp(ticks, static_cast<double>(shortest_),
                                         static_cast<double>(longest_)));
  }

  // Returns the deadlines, longest first, without infeasible ones.
  std::vector<double> Deadlines() {
    std::vector<double> deadlines = report_.request.deadlines;
    if (deadlines.empty()) {
      const double from = scale_.SecondsOf(least_);
      const double to = scale_.SecondsOf(shortest_);
      const int count = least_ == shortest_ ? 1 : report_.request.num_deadlines;
      for (int i = 0; i < count; ++i) {
        deadlines.push_back(
            i + 1 == count ? to : from + (to - from) * i / (count - 1));
      }
    }
    std::sort(deadlines.rbegin(), deadlines.rend());
    // One part in 1e9, for deadlines that were printed.
    const double shortest = scale_.SecondsOf(shortest_) * (1 - 1e-9);
    std::vector<double> feasible;
    for (const double deadline : deadlines) {
      (deadline < shortest ? report_.infeasible_deadlines : feasible)
          .push_back(deadline);
    }
    return feasible;
  }

  void AddStragglers(std::vector<Wanted>* wanted) {
    report_.stragglers.resize(report_.request.stragglers.size());
    for (size_t i = 0; i < report_.stragglers.size(); ++i) {
      StragglerPoint& straggler = report_.stragglers[i];
      straggler.factor = report_.request.stragglers[i];
      straggler.iteration_seconds = straggler.factor * report_.baseline_seconds;
      straggler.point.deadline_seconds = straggler.iteration_seconds;
      // Without a straggler the plan must not be slower than the baseline.
      wanted->push_back({straggler.factor == 1
                             ? shortest_
                             : Clamp(straggler.iteration_seconds),
                         &straggler.point});
    }
  }

  // Returns the most energy of all ranks in an iteration of this length.
  double MostJoules(double seconds) const {
    return report_.request.most_watts * graph().num_ranks * seconds;
  }

  // Finds the shortest iteration whose relaxed energy is within the power, as
  // energy falls and the energy that the power allows rises with its length,
  // and adds deadlines from there on.
  absl::Status AddCapped(std::vector<FrequencyPoint>* points,
                         std::vector<Wanted>* wanted) {
    std::optional<Ticks> first;
    const auto excess = [&](const std::vector<Ticks>& times) {
      const double seconds = scale_.SecondsOf(times[graph().sink]);
      return AddedJoules(graph(), times) + WaitingJoules(seconds) -
             MostJoules(seconds);
    };
    RETURN_IF_ERROR(WalkFrontier(graph(), [&](const FrontierPiece& piece) {
      const double slow = excess(piece.TimesAt(piece.longest));
      if (slow > 0) return false;
      const double fast = excess(piece.TimesAt(piece.shortest));
      const double part = fast > 0 ? -slow / (fast - slow) : 1;
      first = piece.longest -
              static_cast<Ticks>(
                  part * static_cast<double>(piece.longest - piece.shortest));
      return fast <= 0;
    }));
    if (report_.num_pieces == 0 && excess(SlowestTimes()) <= 0) {
      first = longest_;
    }
    if (!first.has_value()) return absl::OkStatus();
    report_.capped_bound_seconds = scale_.SecondsOf(*first);
    // Rounding to clocks takes energy, so a longer deadline may be needed.
    for (int i = 0; i < kCappedDeadlines; ++i) {
      FrequencyPoint& point = points->emplace_back();
      point.deadline_seconds =
          report_.capped_bound_seconds * (1 + kCappedStep * i);
    }
    for (FrequencyPoint& point : *points) {
      wanted->push_back(
          {std::max(*first, Clamp(point.deadline_seconds)), &point});
    }
    return absl::OkStatus();
  }

  void KeepFirstWithin(std::vector<FrequencyPoint> capped) {
    capped.push_back(report_.least);
    for (FrequencyPoint& point : capped) {
      if (point.joules > MostJoules(point.seconds) * (1 + 1e-12)) continue;
      report_.capped = std::move(point);
      return;
    }
  }

  // Keeps the plans of the lower convex hull of times and energies. Requires:
  // `plan` is for a shorter deadline than the supports.
  void AddSupport(ClockPlan plan) {
    const auto is_above = [](const ClockPlan& a, const ClockPlan& middle,
                             const ClockPlan& b) {
      return (middle.added_joules - a.added_joules) *
                 static_cast<double>(b.ticks - a.ticks) <=
             (b.added_joules - a.added_joules) *
                 static_cast<double>(middle.ticks - a.ticks);
    };
    plan.clocks = {};
    while (!supports_.empty() && supports_.back().ticks <= plan.ticks) {
      if (supports_.back().added_joules <= plan.added_joules) return;
      supports_.pop_back();
    }
    while (supports_.size() >= 2 &&
           is_above(supports_[supports_.size() - 2], supports_.back(), plan)) {
      supports_.pop_back();
    }
    supports_.push_back(std::move(plan));
  }

  // Returns the better one of the plan for these times and the supports before
  // and after it, joined.
  ClockPlan BestPlan(const std::vector<Ticks>& times) const {
    ClockPlan plan = ChooseClocks(graph(), times);
    const Ticks end = times[graph().sink];
    const auto fast = std::find_if(
        supports_.begin(), supports_.end(),
        [&](const ClockPlan& support) { return support.ticks <= end; });
    if (fast == supports_.begin() || fast == supports_.end()) return plan;
    ClockPlan joined = JoinPlans(graph(), *(fast - 1), *fast, end);
    return joined.added_joules < plan.added_joules ? joined : plan;
  }

  // Sets the points while the frontier is walked once more, which takes less
  // memory than keeping all times of events.
  absl::Status FillPoints(std::vector<Wanted> wanted,
                          const std::function<void(double)>& progress) {
    std::stable_sort(
        wanted.begin(), wanted.end(),
        [](const Wanted& a, const Wanted& b) { return a.ticks > b.ticks; });
    size_t next = 0;
    RETURN_IF_ERROR(WalkFrontier(graph(), [&](const FrontierPiece& piece) {
      while (next < wanted.size() && wanted[next].ticks >= piece.shortest) {
        Fill(piece.TimesAt(std::min(wanted[next].ticks, piece.longest)),
             wanted[next].point);
        ++next;
        if (progress) progress(1.0 * next / wanted.size());
      }
      return next < wanted.size();
    }));
    for (; next < wanted.size(); ++next) FillOnly(wanted[next].point);
    return absl::OkStatus();
  }

  void Fill(const std::vector<Ticks>& times, FrequencyPoint* point) const {
    point->lower_bound_joules =
        AddedJoules(graph(), times) +
        WaitingJoules(scale_.SecondsOf(times[graph().sink]));
    point->plan = BestPlan(times);
    const ClockPlan& plan = point->plan;
    point->seconds = scale_.SecondsOf(plan.ticks);
    point->joules = plan.added_joules + WaitingJoules(point->seconds);
    point->measured_seconds = plan.seconds;
    point->measured_joules =
        plan.JoulesIn(plan.seconds, graph().num_ranks, watts());
  }

  // Replaces plans by those of shorter deadlines that have less energy, which
  // rounding to clocks may cause.
  void KeepBetterPlans() {
    std::vector<FrequencyPoint*> points = {&report_.least};
    for (FrequencyPoint& point : report_.points) points.push_back(&point);
    std::stable_sort(points.begin(), points.end(),
                     [](const FrequencyPoint* a, const FrequencyPoint* b) {
                       return a->deadline_seconds < b->deadline_seconds;
                     });
    const FrequencyPoint* best = &report_.fastest;
    for (FrequencyPoint* point : points) {
      if (best->joules < point->joules) {
        const FrequencyPoint own = *point;
        *point = *best;
        point->deadline_seconds = own.deadline_seconds;
        point->lower_bound_joules = own.lower_bound_joules;
      }
      best = point;
    }
  }

  // Sets the point of an iteration whose length no clock changes.
  void FillOnly(FrequencyPoint* point) const { Fill(SlowestTimes(), point); }

  void Wait(StragglerPoint* straggler) const {
    const double seconds =
        std::max(straggler->iteration_seconds, straggler->point.seconds);
    straggler->baseline_joules =
        baseline_added_joules_ + WaitingJoules(straggler->iteration_seconds);
    straggler->joules =
        straggler->point.plan.added_joules + WaitingJoules(seconds);
    if (straggler->factor == 1) {
      straggler->joules = straggler->point.joules;
      straggler->baseline_joules = report_.baseline_joules;
    }
  }

  FrequencyReport& report_;
  TickScale scale_;
  double baseline_added_joules_ = 0;
  Ticks longest_ = 0, shortest_ = 0, least_ = 0;
  std::vector<ClockPlan> supports_;  // by descending time, without clocks
};

}  // namespace

absl::StatusOr<FrequencyReport> PlanFrequencies(
    const FrequencyRequest& request,
    const std::function<void(double)>& progress) {
  RETURN_IF_ERROR(CheckRequest(request));
  const TickScale scale = ScaleOf(request);
  FrequencyReport report;
  report.request = request;
  ASSIGN_OR_RETURN(report.graph,
                   GraphOfPasses(request.schedule, request.profile,
                                 request.blocking_watts, scale));
  RETURN_IF_ERROR(FrequencyPlanner(&report, scale).Run(progress));
  return report;
}

}  // namespace weir::plan
