// SPDX-License-Identifier: Apache-2.0
#include "plan/search/quick_plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/search/best_first.h"
#include "plan/search/search_workers.h"
#include "plan/search/seeds.h"

namespace weir::plan {
namespace {

// Spaces with more shapes take seconds to estimate.
constexpr size_t kManyShapes = 20000;

// Returns one shape for each combination of sizes, recomputation, offloading
// and cut (even or balanced): the one with the smallest microbatch, then the
// fewest chunks, then optimizer before full before no sharding.
std::vector<Shape> FewShapes(const std::vector<Shape>& shapes) {
  using Sizes = std::tuple<int, int, int, int, int, int, int, models::Recompute,
                           int, double>;
  const auto sizes_of = [](const Shape& shape) -> Sizes {
    return {shape.tensor,           shape.pipeline,  shape.data,
            shape.context,          shape.expert,    shape.expert_tensor,
            shape.data_replicate,   shape.recompute, shape.offloaded_blocks,
            shape.optimizer_offload};
  };
  const auto rank_of = [](const Shape& shape) {
    const int sharding = shape.sharding == Sharding::kOptimizer ? 0
                         : shape.sharding == Sharding::kFull    ? 1
                                                                : 2;
    return std::make_tuple(shape.microbatch_size, shape.chunks, sharding);
  };
  std::map<std::pair<Sizes, Cut>, const Shape*> least;
  for (const Shape& shape : shapes) {
    if (shape.cut != Cut::kEven && shape.cut != Cut::kBalanced) continue;
    const Shape*& known = least[{sizes_of(shape), shape.cut}];
    if (known == nullptr || rank_of(shape) < rank_of(*known)) known = &shape;
  }
  std::vector<Shape> few;
  for (const auto& [key, shape] : least) few.push_back(*shape);
  return few;
}

// Returns true if the number is at most twice the other, either way.
bool AreClose(int one, int other) {
  return one <= 2 * other && other <= 2 * one;
}

// Returns true if `other` differs from `best` in at most one of its sizes,
// recomputation and sharding, besides the number of replicas and the cut, and
// in a size by at most a factor of two.
bool IsNear(const Shape& best, const Shape& other) {
  int num_different = 0;
  const auto compare = [&](int one, int two) {
    if (one == two) return true;
    ++num_different;
    return AreClose(one, two);
  };
  const bool close = compare(best.tensor, other.tensor) &&
                     compare(best.pipeline, other.pipeline) &&
                     compare(best.context, other.context) &&
                     compare(best.expert, other.expert) &&
                     compare(best.microbatch_size, other.microbatch_size) &&
                     compare(best.chunks, other.chunks);
  if (!close || best.data_replicate != other.data_replicate ||
      best.num_gpus() != other.num_gpus() ||
      best.sequence_parallel != other.sequence_parallel) {
    return false;
  }
  // Without replicas, nothing is reduced.
  if (best.replicated() && other.replicated() &&
      (best.order != other.order || best.reduction != other.reduction)) {
    return false;
  }
  num_different += best.expert_tensor != other.expert_tensor;
  num_different += best.recompute != other.recompute;
  num_different += best.sharding != other.sharding;
  return num_different <= 1;
}

// Improves the plan by steps to near ones. A step costs a few runs, while a
// search has to estimate all shapes first.
absl::Status Climb(const Space& space, const SearchOptions& options, Goal goal,
                   RankedPlan* best) {
  constexpr int kMostSteps = 4;
  constexpr uint64_t kRunsPerStep = 24;
  constexpr double kLeastGain = 1e-3;
  goal.first_only = false;
  goal.most_ranked = kRunsPerStep;
  for (int step = 0; step < kMostSteps; ++step) {
    const Shape at = ShapeOfScenario(best->scenario);
    Space part = space;
    std::erase_if(part.shapes,
                  [&](const Shape& shape) { return !IsNear(at, shape); });
    if (part.shapes.empty()) return absl::OkStatus();
    SearchWorkers workers(part, options);
    goal.known_plan = absl::StrCat(BestText(*best), "; ");
    ASSIGN_OR_RETURN(const std::vector<SearchEstimate> shapes,
                     workers.OfShapes());
    Plan start;
    *start.mutable_scenario() = best->scenario;
    start.set_source(best->source);
    start.set_num_gpus(best->num_gpus);
    const std::vector<Seed> seeds = SeedsOn(part, shapes, {start});
    BestFirst search(part, shapes, seeds, options, goal, &workers);
    absl::Status run = search.Run();
    const std::vector<RankedPlan> found = search.Best();
    const double before = best->seconds;
    if (!found.empty() && found[0].seconds < before) *best = found[0];
    if (!run.ok() || best->seconds > before * (1 - kLeastGain)) return run;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<RankedPlan>> FindQuickPlan(
    const Space& space, Objective objective, double limit_bytes,
    const SearchOptions& options) {
  Space part = space;
  part.shapes = FewShapes(space.shapes);
  SearchWorkers workers(part, options);
  ASSIGN_OR_RETURN(const std::vector<SearchEstimate> shapes,
                   workers.OfShapes());
  Goal goal;
  goal.objective = objective == OBJECTIVE_PARETO ? OBJECTIVE_TIME : objective;
  goal.limit_bytes = limit_bytes;
  goal.first_only = true;
  const std::vector<Seed> no_seeds;
  BestFirst search(part, shapes, no_seeds, options, goal, &workers);
  RETURN_IF_ERROR(search.Run());
  const std::vector<RankedPlan> best = search.Best();
  if (best.empty()) return std::nullopt;
  RankedPlan plan = best[0];
  if (space.shapes.size() > kManyShapes && goal.minimizes_time()) {
    const absl::Status climbed = Climb(space, options, goal, &plan);
    if (!climbed.ok() && !absl::IsCancelled(climbed)) return climbed;
  }
  return plan;
}

}  // namespace weir::plan
