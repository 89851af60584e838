// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/synthesize.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "plan/synthesis/local_search.h"
#include "plan/synthesis/offload_moves.h"
#include "plan/synthesis/order_bound.h"
#include "plan/synthesis/order_mip.h"
#include "plan/synthesis/order_problem.h"
#include "plan/synthesis/starting_points.h"
#include "plan/synthesis/synthesis_size.h"
#include "schedules/validate.h"
#include "schedules/walk.h"

namespace weir::plan {

const NamedOrder* Synthesis::best_named() const {
  return !named.empty() && named.front().fits ? &named.front() : nullptr;
}

namespace {

// Equal values may differ by this much through rounding and CBC's tolerances.
constexpr double kEqual = 1e-6;
// With more booleans, CBC finds nothing in acceptable time.
constexpr int kMaxBooleans = 4000;

class Synthesizer {
 public:
  Synthesizer(const OrderProblem& problem, const SynthesisOptions& options)
      : problem_(problem), options_(options) {
    found_.value = std::numeric_limits<double>::infinity();
  }

  absl::StatusOr<Synthesis> Run() {
    found_.named = NamedOrders(problem_);
    if (const NamedOrder* best = found_.best_named()) {
      KeepIfBetter(best->schedule, best->name);
    }
    FindStartingPoints();
    if (options_.method != SynthesisMethod::kMip) {
      SearchStartingPoints();
      if (problem_.may_offload) SearchWithOffloads();
    }
    SetBound();
    if (options_.method != SynthesisMethod::kLocal && !IsProven()) {
      RETURN_IF_ERROR(SolveStartingPoints());
    }
    RETURN_IF_ERROR(Finish());
    return std::move(found_);
  }

 private:
  // Keeps an order if it is valid, within the limit and better.
  bool KeepIfBetter(const schedules::Schedule& schedule,
                    const std::string& source) {
    if (!schedules::ValidateSchedule(schedule).ok() ||
        !FitsLimit(problem_, schedule)) {
      return false;
    }
    const double value = ObjectiveOf(problem_, schedule);
    if (!(value < found_.value * (1 - kRounding))) return false;
    found_.schedule = schedule;
    found_.value = value;
    found_.source = source;
    return true;
  }

  void FindStartingPoints() {
    for (const std::vector<int>& route : PlacementsOf(problem_)) {
      starting_points_.push_back(
          StartingPointOf(problem_, route, found_.named, found_.value));
      const StartingPoint& starting_point = starting_points_.back();
      for (const auto& [name, rows] : starting_point.starts) {
        KeepIfBetter(starting_point.table.ScheduleOf(rows), name);
      }
    }
  }

  LocalSearchOptions OptionsOf(const StartingPoint& starting_point,
                               size_t run) const {
    return {.num_moves = NumMoves(problem_, options_),
            .seed = options_.seed * 1'000'003 + num_runs_ + run,
            .enough = starting_point.bound.value};
  }

  // Runs the search several times from each start of each placement. Runs are
  // independent, so the result does not depend on the number of threads. Keeps
  // the results so far when interrupted.
  template <typename Starts, typename Find>
  void RunAll(const Starts& starts_of, const Find& find) {
    struct Run {
      const StartingPoint* starting_point;
      size_t start;
      schedules::Schedule found;
      bool has_run = false;
    };
    std::vector<Run> runs;
    for (const StartingPoint& starting_point : starting_points_) {
      for (size_t start = 0; start < starts_of(starting_point).size();
           ++start) {
        for (int run = 0; run < kRunsOfStart; ++run) {
          runs.push_back({&starting_point, start, {}});
        }
      }
    }
    const double all_moves =
        static_cast<double>(runs.size() * NumMoves(problem_, options_));
    const std::thread::id this_thread = std::this_thread::get_id();
    std::atomic<int64_t> num_moves = 0;
    const auto look = [&] {
      num_moves += LocalSearchOptions::kMovesPerLook;
      if (std::this_thread::get_id() == this_thread) {
        ReportProgress("local search",
                       static_cast<double>(num_moves) / all_moves);
      }
      return Interrupted();
    };
    std::atomic<size_t> next = 0;
    const auto work = [&] {
      for (size_t i = next++; i < runs.size() && !Interrupted(); i = next++) {
        const StartingPoint& starting_point = *runs[i].starting_point;
        LocalSearchOptions options = OptionsOf(starting_point, i);
        options.stop = look;
        runs[i].found =
            find(starting_point,
                 starts_of(starting_point)[runs[i].start].second, options);
        runs[i].has_run = true;
      }
    };
    std::vector<std::thread> threads;
    const size_t num_threads = std::min<size_t>(
        std::max(std::thread::hardware_concurrency(), 1U), runs.size());
    for (size_t i = 1; i < num_threads; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    num_runs_ += runs.size();
    for (const Run& run : runs) {
      if (!run.has_run) continue;
      KeepIfBetter(
          run.found,
          absl::StrCat("local search from ",
                       starts_of(*run.starting_point)[run.start].first));
    }
  }

  // `done` is the fraction of the step that `what` names.
  void ReportProgress(const std::string& what, double done) const {
    if (!options_.progress) return;
    options_.progress(
        std::isfinite(found_.value)
            ? absl::StrCat(what, ", best ", FormatSeconds(found_.value))
            : what,
        std::min(done, 1.0));
  }

  // Searches from all starts, and then from the best result.
  void SearchStartingPoints() {
    const auto search = [&] {
      RunAll(
          [](const StartingPoint& starting_point) -> const auto& {
            return starting_point.starts;
          },
          [](const StartingPoint& starting_point, const PassRows& start,
             const LocalSearchOptions& options) {
            return starting_point.table.ScheduleOf(
                SearchLocally(starting_point.table, start, options).rows);
          });
    };
    search();
    SetBound();
    if (IsProven() || problem_.may_offload || Interrupted()) return;
    for (StartingPoint& starting_point : starting_points_) {
      starting_point.starts.clear();
      AddStart(problem_, StartOf(found_.source), found_.schedule,
               &starting_point);
    }
    search();
  }

  static std::string StartOf(absl::string_view source) {
    return std::string(absl::StripPrefix(source, "local search from "));
  }

  // Searches from the best named orders that fit, and from the best without
  // offloads.
  void SearchWithOffloads() {
    for (StartingPoint& starting_point : starting_points_) {
      AddOffloadStart(problem_, StartOf(found_.source), found_.schedule,
                      &starting_point);
      for (const NamedOrder& order : found_.named) {
        AddOffloadStart(problem_, order.name, order.schedule, &starting_point);
      }
    }
    RunAll(
        [](const StartingPoint& starting_point) -> const auto& {
          return starting_point.offload_starts;
        },
        [](const StartingPoint& starting_point, const OffloadRows& start,
           const LocalSearchOptions& options) {
          return ScheduleOf(
              starting_point.table,
              SearchOffloads(starting_point.table, start, options).rows);
        });
  }

  void SetBound() {
    const StartingPoint* least = &starting_points_[0];
    for (const StartingPoint& starting_point : starting_points_) {
      if (starting_point.bound.value < least->bound.value)
        least = &starting_point;
    }
    found_.bound = least->bound.value;
    found_.bound_reason = least->bound.reason;
  }

  bool IsProven() const { return found_.value <= found_.bound * (1 + kEqual); }

  bool MipApplies() const {
    if (!problem_.may_offload) return true;
    for (int stage = 0; stage < problem_.num_stages(); ++stage) {
      const schedules::StagePassCosts& costs = problem_.costs.of(stage);
      if (costs.weight_gradient_inputs > costs.activation) return false;
    }
    return true;
  }

  void Say(const std::string& text) {
    absl::StrAppend(&found_.mip, found_.mip.empty() ? "" : "; ", text);
  }

  absl::Status SolveStartingPoints() {
    if (!MipApplies()) {
      Say("not used: with offloads, it requires that the inputs of weight "
          "gradients are no larger than activations");
      return absl::OkStatus();
    }
    for (StartingPoint& starting_point : starting_points_) {
      if (found_.value <= starting_point.bound.value * (1 + kEqual)) continue;
      absl::Status solved = SolveStartingPoint(&starting_point);
      if (solved.ok()) continue;
      if (absl::IsCancelled(solved)) {
        Say("interrupted");
        break;
      }
      if (absl::IsUnavailable(solved) &&
          options_.method == SynthesisMethod::kAuto) {
        Say(std::string(solved.message()));
        found_.notes.push_back(std::string(solved.message()));
        break;
      }
      return solved;
    }
    SetBound();
    return absl::OkStatus();
  }

  absl::Status SolveStartingPoint(StartingPoint* starting_point) {
    // The size of the MILP grows with the square of a rank's passes.
    const double passes = 3.0 * problem_.num_chunks * problem_.num_microbatches;
    if (passes * passes * problem_.num_ranks > 60.0 * kMaxBooleans) {
      Say("not used: the program is too large");
      return absl::OkStatus();
    }
    const OrderMip mip(starting_point->table, starting_point->bound.value,
                       found_.value);
    if (mip.num_booleans() > kMaxBooleans) {
      Say(absl::StrCat("not used: the program has ", mip.num_booleans(),
                       " binary variables"));
      return absl::OkStatus();
    }
    MipOptions options;
    options.seconds =
        options_.seconds / static_cast<double>(starting_points_.size());
    options.solver = options_.solver;
    options.tick = [&, start = std::chrono::steady_clock::now()] {
      const std::chrono::duration<double> passed =
          std::chrono::steady_clock::now() - start;
      ReportProgress("mixed-integer program", passed.count() / options.seconds);
    };
    if (!problem_.may_offload && !HasOffloads(found_.schedule) &&
        found_.schedule.routes[0] == starting_point->table.route()) {
      options.start =
          mip.StartOf(starting_point->table.RowsOf(found_.schedule));
    }
    ASSIGN_OR_RETURN(const MipResult result, SolveMip(mip.model(), options));
    Say(absl::StrCat(mip.num_booleans(),
                     " binary variables: ", Describe(result)));
    if (result.has_values()) {
      TakeSolution(mip.ScheduleOf(result.values));
    }
    // Within tolerances, a solution may seem shorter than it is. The bound must
    // remain a bound.
    double bound = std::min(result.bound * mip.unit(), found_.value);
    // Infeasible: no order of this placement beats the known one. If the known
    // order is itself a solution of this program, or may be (offloads), CBC has
    // erred and nothing is proven.
    if (result.state == MipResult::State::kInfeasible) {
      const bool errs =
          problem_.may_offload ||
          found_.schedule.routes[0] == starting_point->table.route();
      bound = errs ? 0 : found_.value;
    }
    if (bound > starting_point->bound.value) {
      starting_point->bound = {bound, "the mixed-integer program"};
    }
    return absl::OkStatus();
  }

  // Keeps the solution if it is better. With offloads, forwards and reloads
  // wait while a rank holds Schedule::resident_activations; tries every value
  // of it.
  void TakeSolution(schedules::Schedule schedule) {
    const std::string source = "mixed-integer program";
    if (!HasOffloads(schedule)) {
      KeepIfBetter(schedule, source);
      return;
    }
    for (int count = problem_.num_microbatches; count >= 0; --count) {
      schedule.resident_activations = count;
      KeepIfBetter(schedule, source);
    }
  }

  absl::Status Finish() {
    found_.interrupted = Interrupted();
    if (!std::isfinite(found_.value) && found_.interrupted) {
      return absl::CancelledError(
          "interrupted before an order that fits was found");
    }
    if (!std::isfinite(found_.value)) {
      return absl::InternalError("no order that fits was found");
    }
    found_.schedule.name = "synthesized";
    RETURN_IF_ERROR(schedules::ValidateSchedule(found_.schedule));
    const schedules::WalkTimes times =
        schedules::TimedWalk(found_.schedule, problem_.costs);
    found_.makespan = times.makespan();
    found_.span = times.span();
    found_.peak_held = PeakHeld(problem_, found_.schedule);
    found_.bound = std::min(found_.bound, found_.value);
    found_.is_proven = IsProven();
    return absl::OkStatus();
  }

  const OrderProblem& problem_;
  const SynthesisOptions& options_;
  std::vector<StartingPoint> starting_points_;
  size_t num_runs_ = 0;
  Synthesis found_;
};

}  // namespace

absl::StatusOr<Synthesis> Synthesize(const OrderProblem& problem,
                                     const SynthesisOptions& options) {
  RETURN_IF_ERROR(CheckOrderProblem("weir schedule synthesize", problem));
  RETURN_IF_ERROR(
      CheckSynthesisSize("weir schedule synthesize", problem, options));
  OrderProblem alone = problem;  // passes run one at a time
  Synthesis synthesis;
  bool overlapped = false;
  for (schedules::StagePassCosts& stage : alone.costs.stages) {
    overlapped |= stage.overlapped.has_value();
    stage.overlapped.reset();
  }
  ASSIGN_OR_RETURN(synthesis, Synthesizer(alone, options).Run());
  if (overlapped) {
    synthesis.notes.push_back(
        "the cost of overlapping F and B is not used: passes run one at a "
        "time");
  }
  return synthesis;
}

}  // namespace weir::plan
