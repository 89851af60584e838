// SPDX-License-Identifier: Apache-2.0
#include "plan/search/quick_plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "plan/search/best_first.h"
#include "plan/search/search_workers.h"

namespace weir::plan {
namespace {

// Returns the shapes that differ in size, cut or recomputation from all others,
// with optimizer sharding where the space has it.
std::vector<Shape> FewShapes(const std::vector<Shape>& shapes) {
  using Sizes =
      std::tuple<int, int, int, int, int, int, int, models::Recompute>;
  const auto sizes_of = [](const Shape& shape) -> Sizes {
    return {shape.tensor,         shape.pipeline, shape.data,
            shape.context,        shape.expert,   shape.expert_tensor,
            shape.data_replicate, shape.recompute};
  };
  // The least that all others of these sizes are compared with.
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
  return best[0];
}

}  // namespace weir::plan
