// SPDX-License-Identifier: Apache-2.0
#include "plan/search/joint_search.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "plan/search/best_first.h"
#include "plan/search/confirm.h"
#include "plan/search/explain_plan.h"
#include "plan/search/infeasible.h"
#include "plan/search/neighbors.h"
#include "plan/search/plan_views.h"
#include "plan/search/quick_plan.h"
#include "plan/search/search_workers.h"
#include "plan/search/seeds.h"
#include "plan/search/space.h"
#include "sim/fill_result.h"

namespace weir::plan {
namespace {

constexpr uint32_t kUsualPlans = 5;
constexpr uint32_t kUsualPatience = 300;
constexpr std::chrono::seconds kLongestAfterEnd(10);

void AddWarnings(const Space& space, const PlanRequest& request,
                 PlanReport* report) {
  const double limit = space.memory_limit_bytes;
  *report->mutable_defaults() = sim::ReportDefaults(space.base.used_defaults);
  for (const std::string& warning : space.base.warnings) {
    report->add_warnings(warning);
  }
  for (const std::string& warning : space.warnings) {
    report->add_warnings(warning);
  }
  if (request.memory_limit_bytes() > limit) {
    report->add_warnings(absl::StrCat(
        "the memory limit of ", FormatBytes(request.memory_limit_bytes()),
        " is larger than the memory that a plan may use, ", FormatBytes(limit),
        ", and has no effect",
        space.memory_part < 1
            ? absl::StrCat(" (", FormatPercent(1 - space.memory_part),
                           " is left free, see --memory-margin)")
            : ""));
  }
}

// Confirms the best plans; each one that is refused is replaced by the next
// best.
class Finder {
 public:
  Finder(const Space& space, const PlanRequest& request,
         const SearchOptions& options, BestFirst* search)
      : space_(space), request_(request), options_(options), search_(search) {}

  absl::Status Find(PlanReport* report) {
    while (true) {
      absl::Status run = search_->Run();
      if (!run.ok() && !absl::IsCancelled(run)) return run;
      bool all_stand = false;
      do {
        ASSIGN_OR_RETURN(all_stand, ConfirmAll(search_->Best(), report));
      } while (!all_stand && !run.ok());  // no further search
      if (all_stand) {
        Report(search_->Best(), report);
        return run;
      }
    }
  }

  // Reports the confirmed seeds, for a search that was interrupted before it
  // found a plan.
  absl::Status FindAmongSeeds(const std::vector<Plan>& seeds, size_t num_plans,
                              PlanReport* report) {
    std::vector<RankedPlan> found;
    for (const Plan& seed : seeds) {
      RankedPlan& one = found.emplace_back();
      one.scenario = seed.scenario();
      one.source = seed.source();
      one.text = absl::StrCat(seed.source(), " ", seed.scenario().schedule());
      one.num_gpus = static_cast<int>(seed.num_gpus());
      one.index = static_cast<int>(found.size());
    }
    ASSIGN_OR_RETURN(std::vector<Confirmed> looked, Look(found));
    std::vector<RankedPlan> best;
    for (size_t i = 0; i < found.size(); ++i) {
      if (!looked[i].simulated && seeds[i].batch_seconds() > 0) {
        // Its ranked run is known.
        found[i].seconds = seeds[i].batch_seconds();
        found[i].bytes = seeds[i].peak_memory_bytes();
        looked[i] =
            Unconfirmed(space_, found[i], request_.price_per_gpu_hour());
        looked[i].simulated = true;
      }
      if (!looked[i].simulated || !looked[i].refused.empty()) continue;
      found[i].seconds = looked[i].plan.batch_seconds();
      found[i].bytes = looked[i].plan.peak_memory_bytes();
      found[i].joules = looked[i].plan.joules_per_step();
      best.push_back(found[i]);
      confirmed_[found[i].index] = std::move(looked[i]);
    }
    if (best.empty()) {
      return absl::CancelledError(
          "the search ended before a plan that fits was found");
    }
    report->set_num_simulated(best.size());
    report->add_warnings(
        "no candidate was evaluated before the search ended; showing the plans "
        "from which it starts");
    Report(BestOf(std::move(best), request_.objective(), num_plans), report);
    return absl::OkStatus();
  }

  // Returns the first plan of the report.
  const Confirmed& best() const { return *best_; }

  // Plans that were found but refused, each with the reason.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  // Returns true if simulations must stop. After an interrupt they continue for
  // a short time, as Slurm and timeout(1) soon send SIGKILL.
  bool IsOver() {
    if (options_.progress) options_.progress("simulating the best plans");
    if (!MustEnd(options_)) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!ended_at_) ended_at_ = now;
    return now - *ended_at_ > kLongestAfterEnd;
  }

  // Simulates all plans. The signal of an interrupt may also have ended the
  // child processes, whose plans are simulated again.
  absl::StatusOr<std::vector<Confirmed>> Look(
      const std::vector<RankedPlan>& found) {
    std::vector<Confirmed> looked(found.size());
    for (int attempt = 0; attempt < 2; ++attempt) {
      std::vector<RankedPlan> left;
      std::vector<size_t> at;
      for (size_t i = 0; i < found.size(); ++i) {
        if (looked[i].simulated) continue;
        left.push_back(found[i]);
        at.push_back(i);
      }
      if (left.empty()) break;
      ASSIGN_OR_RETURN(
          std::vector<Confirmed> confirmed,
          Confirm(space_, left, request_.price_per_gpu_hour(),
                  options_.num_processes, [this] { return IsOver(); }));
      for (size_t i = 0; i < left.size(); ++i) {
        looked[at[i]] = std::move(confirmed[i]);
      }
    }
    return looked;
  }

  absl::StatusOr<bool> ConfirmAll(const std::vector<RankedPlan>& best,
                                  PlanReport* report) {
    std::vector<RankedPlan> fresh;
    for (const RankedPlan& found : best) {
      if (!confirmed_.contains(found.index)) fresh.push_back(found);
    }
    ASSIGN_OR_RETURN(std::vector<Confirmed> looked, Look(fresh));
    bool all_stand = true;
    for (size_t i = 0; i < fresh.size(); ++i) {
      if (!looked[i].simulated) {
        looked[i] =
            Unconfirmed(space_, fresh[i], request_.price_per_gpu_hour());
        report->add_warnings(absl::StrCat(
            "the search ended before the full simulation of ", fresh[i].text,
            ": its time and memory are estimates of the search"));
      }
      if (!looked[i].refused.empty()) {
        all_stand = false;
        search_->Exclude(fresh[i]);
        left_out_.push_back(
            absl::StrCat("rejected: ", fresh[i].text, ": ", looked[i].refused));
        report->add_warnings(left_out_.back());
      }
      num_simulated_ += looked[i].simulated ? 1 : 0;
      confirmed_[fresh[i].index] = std::move(looked[i]);
    }
    report->set_num_simulated(num_simulated_);
    return all_stand && !ExcludeEqual(best);
  }

  // Excludes plans that have the layout of an earlier one (on a Pareto front:
  // that equal it) once their scenarios are resolved: seeds do not set what the
  // defaults set. Returns true if there were any.
  bool ExcludeEqual(const std::vector<RankedPlan>& best) {
    const bool pareto = request_.objective() == OBJECTIVE_PARETO;
    std::vector<RankedPlan> kept;
    bool any = false;
    for (const RankedPlan& found : best) {
      RankedPlan resolved = found;
      const Plan& plan = confirmed_[found.index].plan;
      resolved.scenario = plan.scenario();
      resolved.seconds = plan.batch_seconds();
      resolved.bytes = plan.peak_memory_bytes();
      resolved.joules = plan.joules_per_step();
      const bool known =
          std::any_of(kept.begin(), kept.end(), [&](const RankedPlan& earlier) {
            return pareto ? IsSamePlan(earlier, resolved)
                          : HasSameLayout(earlier.scenario, resolved.scenario);
          });
      if (known) {
        search_->Exclude(found);
        any = true;
      } else {
        kept.push_back(std::move(resolved));
      }
    }
    return any;
  }

  // Adds the plans in the order of their simulated scores.
  void Report(const std::vector<RankedPlan>& best, PlanReport* report) {
    std::vector<const Confirmed*> plans;
    for (const RankedPlan& found : best)
      plans.push_back(&confirmed_[found.index]);
    const auto score = [&](const Confirmed* one) {
      return ScoreOf(request_.objective(), one->plan.batch_seconds(),
                     one->plan.peak_memory_bytes(),
                     static_cast<int>(one->plan.num_gpus()),
                     one->plan.joules_per_step());
    };
    std::stable_sort(plans.begin(), plans.end(),
                     [&](const Confirmed* a, const Confirmed* b) {
                       return score(a) < score(b);
                     });
    if (!plans.empty()) best_ = plans.front();
    for (const Confirmed* one : plans) {
      Plan* plan = report->add_plans();
      *plan = one->plan;
      if (one != plans.front()) {
        plan->set_why_not_best(
            WhyNotBest(request_.objective(), *plans.front(), *one));
      }
    }
  }

  const Space& space_;
  const PlanRequest& request_;
  const SearchOptions& options_;
  BestFirst* search_;
  std::map<int, Confirmed> confirmed_;
  const Confirmed* best_ = nullptr;
  uint64_t num_simulated_ = 0;
  std::optional<std::chrono::steady_clock::time_point> ended_at_;
  std::vector<std::string> left_out_;
};

Plan SeedOf(const RankedPlan& found) {
  Plan plan;
  *plan.mutable_scenario() = found.scenario;
  plan.set_source(found.source);
  plan.set_num_gpus(found.num_gpus);
  plan.set_batch_seconds(found.seconds);
  plan.set_peak_memory_bytes(found.bytes);
  return plan;
}

// Returns the reason for the end of a search that was cancelled.
SearchEnd EndOfCancelled() {
  return Interrupted() ? SEARCH_END_INTERRUPT : SEARCH_END_TIME_LIMIT;
}

// Returns the error if a search was cancelled before it found a plan: Cancelled
// after a signal, FailedPrecondition (a negative result) after --time-limit.
absl::Status NothingFoundInTime(const std::string& text) {
  return Interrupted() ? absl::CancelledError(text)
                       : absl::FailedPreconditionError(text);
}

// Returns the report of a search before it begins.
PlanReport StartReport(const Space& space, const PlanRequest& request) {
  PlanReport report;
  *report.mutable_request() = request;
  report.mutable_schedules()->Assign(space.schedule_names.begin(),
                                     space.schedule_names.end());
  report.set_schedules_of_runtime(space.schedules_of_runtime);
  report.set_memory_limit_bytes(space.memory_limit_bytes);
  AddWarnings(space, request, &report);
  return report;
}

// What a search starts from.
struct SearchStart {
  std::vector<Plan> plans;     // seeds
  std::string first;           // the first plan found, for progress
  std::optional<Score> score;  // of that plan
};

// Collects the plans to start from: the seeds of the options and, if they can
// find more, a first plan by a quick search, and the seeds that they find.
absl::StatusOr<SearchStart> FindStart(const Space& space,
                                      const PlanRequest& request,
                                      const SearchOptions& options) {
  SearchStart start;
  start.plans = options.seeds;
  if (!options.find_seeds) return start;
  auto quick = FindQuickPlan(space, request.objective(),
                             space.memory_limit_bytes, options);
  if (!quick.ok() && !absl::IsCancelled(quick.status())) {
    return quick.status();
  }
  if (quick.ok() && quick->has_value()) {
    start.first = absl::StrCat(BestText(**quick), "; ");
    start.score =
        ScoreOf(request.objective(), (*quick)->seconds, (*quick)->bytes,
                (*quick)->num_gpus, (*quick)->joules);
    if (options.improved) options.improved(RankedAsPlan(**quick));
    start.plans.push_back(SeedOf(**quick));
  }
  if (!MustEnd(options)) {
    for (Plan& seed : options.find_seeds(start.first)) {
      start.plans.push_back(std::move(seed));
    }
  }
  return start;
}

// Returns the report of a search that was cancelled before its first candidate.
absl::StatusOr<PlanReport> ReportSeeds(const Space& space,
                                       const PlanRequest& request,
                                       const SearchOptions& options,
                                       const std::vector<Plan>& seeds,
                                       size_t num_plans, PlanReport report) {
  report.set_end(EndOfCancelled());
  const absl::Status found = Finder(space, request, options, nullptr)
                                 .FindAmongSeeds(seeds, num_plans, &report);
  if (absl::IsCancelled(found)) {
    return NothingFoundInTime(std::string(found.message()));
  }
  RETURN_IF_ERROR(found);
  return report;
}

// Computes the costs of all shapes, and reports the progress.
absl::StatusOr<std::vector<SearchEstimate>> PriceShapes(
    const Space& space, const std::string& first, const SearchOptions& options,
    SearchWorkers* workers) {
  if (options.progress) {
    workers->set_tick([&space, &options, first] {
      options.progress(absl::StrCat(first, "computing the costs of ",
                                    space.shapes.size(), " layouts"));
    });
  }
  return workers->OfShapes();
}

Goal GoalOf(const PlanRequest& request, double limit_bytes, size_t num_plans,
            const SearchStart& start) {
  Goal goal;
  goal.objective = request.objective();
  goal.limit_bytes = limit_bytes;
  goal.num_plans = num_plans;
  goal.gap = request.gap();
  goal.known_score = start.score;
  if (!start.first.empty()) goal.known_plan = start.first;
  goal.patience = request.has_patience() ? request.patience() : kUsualPatience;
  return goal;
}

// Leaves out plans that are no better than an earlier one: parts of a search do
// not know what the others have reported. Plans that are only ranked have no
// energy; there each part reports its own.
SearchOptions OnlyImproving(const SearchOptions& options, Objective objective) {
  SearchOptions filtered = options;
  if (!options.improved || objective == OBJECTIVE_ENERGY) return filtered;
  filtered.improved = [improved = options.improved, objective,
                       best =
                           std::optional<Score>()](const Plan& plan) mutable {
    const Score score =
        ScoreOf(objective, plan.batch_seconds(), plan.peak_memory_bytes(),
                static_cast<int>(plan.num_gpus()), 0);
    if (best.has_value() && score >= *best) return;
    best = score;
    improved(plan);
  };
  return filtered;
}

}  // namespace

bool MustEnd(const SearchOptions& options) {
  return Interrupted() || std::chrono::steady_clock::now() > options.deadline;
}

absl::StatusOr<PlanReport> SearchPlans(const std::string& label,
                                       const PlanRequest& request,
                                       const SearchOptions& all_options) {
  const SearchOptions options = OnlyImproving(all_options, request.objective());
  ASSIGN_OR_RETURN(const Space space, MakeSpace(label, request));
  PlanReport report = StartReport(space, request);
  const size_t num_plans =
      request.num_plans() > 0 ? request.num_plans() : kUsualPlans;
  ASSIGN_OR_RETURN(const SearchStart start, FindStart(space, request, options));
  const auto among_seeds = [&] {
    return ReportSeeds(space, request, options, start.plans, num_plans, report);
  };
  if (MustEnd(options)) return among_seeds();
  SearchWorkers workers(space, options);
  const auto priced = PriceShapes(space, start.first, options, &workers);
  if (absl::IsCancelled(priced.status())) return among_seeds();
  RETURN_IF_ERROR(priced.status());
  const std::vector<SearchEstimate>& shapes = *priced;
  const std::vector<Seed> seeds = SeedsOn(space, shapes, start.plans);
  BestFirst search(space, shapes, seeds, options,
                   GoalOf(request, space.memory_limit_bytes, num_plans, start),
                   &workers);
  Finder finder(space, request, options, &search);
  const absl::Status status = finder.Find(&report);
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  search.FillCounts(&report);
  if (!status.ok()) report.set_end(EndOfCancelled());
  if (report.plans_size() > 0) {
    if (options.neighbors && request.objective() != OBJECTIVE_PARETO) {
      RETURN_IF_ERROR(AddNeighbors(space, shapes, finder.best(), options,
                                   &workers, &report));
    }
    return report;
  }
  if (!status.ok()) {
    if (finder.FindAmongSeeds(start.plans, num_plans, &report).ok()) {
      return report;
    }
    return NothingFoundInTime(
        absl::StrCat("the search ended before a plan that fits was found; ",
                     CountsText(report)));
  }
  if (!finder.left_out().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        label,
        ": every plan found was rejected by the full simulation or the "
        "linter:\n",
        absl::StrJoin(finder.left_out(), "\n")));
  }
  return report.num_invalid() == report.num_candidates()
             ? NothingValid(space, search.problems())
             : NothingFits(request, space, shapes, seeds, options, &workers);
}

}  // namespace weir::plan
