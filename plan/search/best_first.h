// SPDX-License-Identifier: Apache-2.0
// A best-first search over candidate plans. Bounds are refined in steps of
// increasing cost: first a bound of a whole shape from its costs, then of its
// orders, then of each schedule, and last a ranked run. Entries to be ranked
// are taken from several families (frontier.h). The search ends when no bound
// is below the best plans found, in which case nothing better was left out, or
// when patience runs out or the proven gap is small enough, in which cases the
// rest is only known by its bounds.
// Seeds come first and cost no patience: each is ranked unless its bound shows
// that it is no better than a plan found before.
//
// Variants of shapes (variants.h) come last: when nothing else is left that
// could be better, the switches of all shapes that may still be, and the
// memory-saving variants of those that do not fit. Those of the layout of every
// new best plan come at once, so that a search that ends early has them.
//
// Rounds have a fixed size and are completed before the next one starts, so the
// plans found and all counts do not depend on the number of processes.
#ifndef WEIR_PLAN_SEARCH_BEST_FIRST_H_
#define WEIR_PLAN_SEARCH_BEST_FIRST_H_

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/infinity.h"
#include "plan/search/frontier.h"
#include "plan/search/joint_search.h"
#include "plan/search/ranked_plan.h"
#include "plan/search/search_workers.h"
#include "plan/search/seeds.h"
#include "plan/search/space.h"

namespace weir::plan {

struct Goal {
  Objective objective = OBJECTIVE_TIME;
  double limit_bytes = 0;  // per GPU
  // Keeps plans that exceed `limit_bytes`, to find the smallest of all.
  bool ignore_memory = false;
  size_t num_plans = 1;
  // Consecutive ranked runs without improvement that end the search; 0: no
  // limit.
  uint64_t patience = 0;
  // Fraction by which another plan may be better than the best; see
  // PlanRequest.
  double gap = 0;
  // Ends the search at the first plan.
  bool first_only = false;
  // Ranked runs that end the search; 0: no limit.
  uint64_t most_ranked = 0;
  // Only plans better than this one are reported as they are found.
  std::optional<Score> known_score = {};
  // For progress until the search finds a plan.
  std::string known_plan = "no plan that fits yet; ";

  bool minimizes_time() const {
    return objective == OBJECTIVE_TIME || objective == OBJECTIVE_UNSPECIFIED;
  }
};

class BestFirst {
 public:
  // All arguments must outlive the search.
  BestFirst(const Space& space, const std::vector<SearchEstimate>& shapes,
            const std::vector<Seed>& seeds, const SearchOptions& options,
            Goal goal, SearchWorkers* workers);
  ~BestFirst();
  BestFirst(const BestFirst&) = delete;
  BestFirst& operator=(const BestFirst&) = delete;

  // Runs until nothing better is left, the gap is proven or patience runs out.
  // Returns Cancelled when interrupted or out of time; plans found so far are
  // kept. May be called again after Exclude.
  absl::Status Run();

  // Returns the best plans, best first; for a Pareto front, all of it by time.
  std::vector<RankedPlan> Best() const;
  // Removes `found` from the answer; the next Run may find a replacement.
  void Exclude(const RankedPlan& found);

  void FillCounts(PlanReport* report) const;
  // Reasons why candidates are invalid, each with the number of candidates.
  const std::map<std::string, uint64_t>& problems() const { return problems_; }

 private:
  using Entry = OpenEntry;
  using State = OpenEntry::State;

  // Counts the candidates of a shape with its estimate and opens them.
  void AddShape(int shape);
  const SearchEstimate& EstimateOf(int shape) const {
    return static_cast<size_t>(shape) < shapes_.size() ? shapes_[shape]
                                                       : variants_.at(shape);
  }
  // Opens a variant, whose estimate is not known yet.
  void Release(int shape, int variant);
  void ReleaseSwitches(int index);
  // Opens the next memory-saving variants of a shape that does not fit.
  void ReleaseMemorySavingVariants(int index);
  // Opens the variants next to a new best plan.
  void ReleaseNear(int index);
  // Opens further variants of all shapes that may be better than the best
  // plans. Returns false if there are none left.
  bool ReleaseMore();
  void PrepareVariants();
  void NoteMisfit(int index);
  // Returns the next memory-saving variants of a shape that does not fit which
  // may fit.
  std::vector<int> MemorySavingVariantsOf(int index) const;
  void AddSeeds();
  void Push(Entry entry);
  void UpdateThreshold();
  bool IsBeaten(const Entry& entry) const;
  void Invalid(const std::string& problem, uint64_t count);
  bool IsSeeded(int shape, int schedule) const {
    return seeded_.contains({shape, schedule});
  }
  // Returns the number of candidates in an entry. A shape's entry has one for
  // each legal schedule that is not a seed.
  uint64_t NumIn(const Entry& entry) const;
  const std::vector<char>& LegalOf(int shape);
  const std::vector<PlannedSchedule>& SchedulesOf(int shape) const {
    return space_.schedules_of(space_.shapes[space_.ShapeOf(shape)]);
  }
  Scenario ScenarioOf(const Entry& entry) const;
  Shape ShapeOf(int shape) const;
  int GpusOf(const Entry& entry) const;

  // Returns the bytes above which no bound on the time of a candidate is
  // needed.
  double LimitOfBounds() const {
    if (!goal_.ignore_memory) return goal_.limit_bytes;
    return goal_.objective == OBJECTIVE_MEMORY ? 1 : kInfinity;
  }
  // Runs one round. Returns false if nothing left could be better.
  absl::StatusOr<bool> Round();
  // Estimates variants and adds them as shapes.
  absl::Status EstimateVariants(const std::vector<Entry>& variants);
  absl::Status Expand(const std::vector<Entry>& shapes);
  // Records the bounds of a candidate, which is then ready to be ranked.
  static void AddBounds(const SearchEstimate& estimate, Entry* entry);
  absl::Status Bound(const std::vector<Entry>& candidates);
  // On error, leaves in `bounded` the entries that were not counted.
  absl::Status Rank(std::vector<Entry>* bounded);
  // Returns the entries whose order of passes is new for their shape.
  absl::StatusOr<std::vector<Entry>> Deduplicate(
      const std::vector<Entry>& bounded);
  // Merges `found` into an equal plan that is already known and keeps the one
  // with the smaller `place`. Returns false if no known plan is equal.
  bool Merge(RankedPlan found);
  bool PatienceExhausted() const;
  bool GapIsProven() const;
  // Returns a lower bound on the first score of any candidate, by its schedule.
  double LeastOpenScore() const;
  // Returns a lower bound on the seconds of variants that are not open yet.
  double LeastVariantSeconds() const;
  bool has_variants() const {
    return space_.variants.size() > 1 && !goal_.ignore_memory &&
           goal_.objective != OBJECTIVE_MEMORY;
  }
  // Returns the seconds that the rest of the search takes at most, at the speed
  // so far; std::nullopt if nothing was measured yet.
  std::optional<double> SecondsLeft() const;
  const RankedPlan* BestSoFar() const;  // null: no plan yet
  void ReportProgress() const;
  void ReportImprovement();

  const Space& space_;
  const std::vector<SearchEstimate>& shapes_;
  const std::vector<Seed>& seeds_;
  const SearchOptions& options_;
  const Goal goal_;
  SearchWorkers* workers_;
  // Whether each schedule is legal, by [pipeline, chunks, microbatches, even
  // cut, sharded (refuses schedules without a flush), one-sample microbatches,
  // whole vocabulary].
  std::map<std::tuple<int, int, int, bool, bool, bool, bool>, std::vector<char>>
      legal_;
  // Seeds that are in the space, as [shape, schedule].
  absl::flat_hash_set<std::pair<int, int>> seeded_;
  Frontier open_;
  std::vector<RankedPlan> found_;  // that fit, no two equal
  absl::flat_hash_set<int> excluded_;
  // The score that a plan must beat; std::nullopt if there are too few plans
  // yet, or for a Pareto front.
  std::optional<Score> threshold_;
  // [shape, hash of the order]
  absl::flat_hash_set<std::pair<int, uint64_t>> orders_;
  std::map<std::string, uint64_t> problems_;
  uint64_t num_candidates_ = 0, num_invalid_ = 0, num_memory_ = 0;
  uint64_t num_ranked_ = 0, num_duplicates_ = 0;
  uint64_t improved_at_ = 0;       // `num_ranked_` at the last improvement
  std::optional<Score> reported_;  // of the last plan reported as better
  absl::flat_hash_map<int, SearchEstimate> variants_;
  absl::flat_hash_set<int> released_, misfits_;  // indices
  std::vector<int> switches_;                    // variants that save nothing
  // By shape: those that differ only in the recomputation, none and full; -1:
  // there is none. Empty without variants.
  std::vector<int> none_of_, full_of_;
  enum class Released { kNone, kMemorySaving, kAll };
  Released stage_ = Released::kNone;
  bool small_rounds_ = false;
  int rounds_of_bounds_ = 0;  // since the last run
  double least_seconds_;
  // Entries that were not beaten at the last round, and wall time so far, by
  // state.
  std::array<uint64_t, 3> num_open_ = {}, num_done_ = {};
  std::array<double, 3> done_seconds_ = {};
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_BEST_FIRST_H_
