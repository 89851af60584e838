// SPDX-License-Identifier: Apache-2.0
// Looks at candidates with the best bounds first, each bound as cheap as will
// do: first of a whole shape from its costs, then of its orders, then of the
// schedule, last the ranked run; of what is to be ranked some of each family
// (frontier.h). Ends when no bound is below the best that were found, so that
// nothing better was left out; or when patience ends, which leaves the rest to
// the bounds. Seeds come first and cost no patience: each is ranked, unless its
// bound says that it is no better than what was found.
//
// Rounds have a fixed size and end together: what is found, and every count,
// is the same whatever the number of processes.
#ifndef WEIR_PLAN_BEST_FIRST_H_
#define WEIR_PLAN_BEST_FIRST_H_

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/crew.h"
#include "plan/found.h"
#include "plan/frontier.h"
#include "plan/joint_search.h"
#include "plan/seeds.h"
#include "plan/space.h"

namespace weir {

struct Goal {
  Objective objective = OBJECTIVE_TIME;
  double limit_bytes = 0;  // of a GPU
  // The smallest is wanted, whether it fits or not.
  bool ignore_memory = false;
  size_t num_plans = 1;
  // Ranked runs in a row that find nothing better and end it; 0: no number.
  uint64_t patience = 0;
};

class BestFirst {
 public:
  // All must outlive it.
  BestFirst(const Space& space, const std::vector<SearchFigures>& shapes,
            const std::vector<Seed>& seeds, const SearchOptions& options,
            Goal goal, Crew* crew);
  ~BestFirst();
  BestFirst(const BestFirst&) = delete;
  BestFirst& operator=(const BestFirst&) = delete;

  // Until nothing better is left, patience ends, or it is interrupted: then
  // Cancelled, and what was found stays. May be called again after Exclude.
  absl::Status Run();

  // The best that were found, best first; of a Pareto front all, by time.
  std::vector<Found> Best() const;
  // It is no answer after all.
  void Exclude(const Found& found);

  void FillCounts(PlanReport* report) const;
  // Why candidates are illegal: each reason with how many it refused.
  const std::map<std::string, uint64_t>& problems() const { return problems_; }

 private:
  using Entry = OpenEntry;
  using State = OpenEntry::State;

  void AddShape(int shape);
  void AddSeeds();
  void Push(Entry entry);
  bool IsBeaten(const Entry& entry) const;
  void Illegal(const std::string& problem, uint64_t count);
  bool IsSeeded(int shape, int schedule) const {
    return seeded_.contains({shape, schedule});
  }
  // Candidates: of a shape those that it takes, and that are no seeds.
  uint64_t NumIn(const Entry& entry) const;
  const std::vector<char>& LegalOf(int shape);
  Scenario ScenarioOf(const Entry& entry) const;
  Shape ShapeOf(int shape) const;
  int GpusOf(const Entry& entry) const;

  // False: nothing is left that could be better.
  absl::StatusOr<bool> Round();
  absl::Status Expand(const std::vector<Entry>& shapes);
  absl::Status Bound(const std::vector<Entry>& candidates);
  // On an error leaves in `bounded` those that are not counted.
  absl::Status Rank(std::vector<Entry>* bounded);
  // Less those whose order another one of the shape has.
  absl::StatusOr<std::vector<Entry>> WithoutDoubles(
      const std::vector<Entry>& bounded);
  // Keeps one of two equal plans. False: there is none equal to it.
  bool Merge(Found found);
  bool IsOutOfPatience() const;
  const Found* BestSoFar() const;  // null: none
  void Tell() const;

  const Space& space_;
  const std::vector<SearchFigures>& shapes_;
  const std::vector<Seed>& seeds_;
  const SearchOptions& options_;
  const Goal goal_;
  Crew* crew_;
  // [pipeline, chunks, microbatches; even cut, without flush refused,
  // microbatches of one sample]: of each schedule.
  std::map<std::tuple<int, int, int, bool, bool, bool>, std::vector<char>>
      legal_;
  // Those of the space that are seeds: shape and schedule.
  absl::flat_hash_set<std::pair<int, int>> seeded_;
  Frontier open_;
  std::vector<Found> found_;  // that fit, no two of them equal
  absl::flat_hash_set<int> excluded_;
  // [shape, hash of the order]
  absl::flat_hash_set<std::pair<int, uint64_t>> orders_;
  std::map<std::string, uint64_t> problems_;
  uint64_t num_candidates_ = 0, num_illegal_ = 0, num_memory_ = 0;
  uint64_t num_ranked_ = 0, num_same_ = 0;
  uint64_t improved_at_ = 0;  // ranked runs when a better plan was found
  double least_seconds_;
};

}  // namespace weir

#endif  // WEIR_PLAN_BEST_FIRST_H_
