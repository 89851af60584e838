// SPDX-License-Identifier: Apache-2.0
// Bounds and ranked runs of candidates, computed in a worker process.
#ifndef WEIR_PLAN_SEARCH_EVALUATE_H_
#define WEIR_PLAN_SEARCH_EVALUATE_H_

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "plan/search/cuts.h"
#include "plan/search/search_work.pb.h"
#include "plan/search/space.h"
#include "sim/bounds/bound.h"
#include "sim/costs/stage_totals.h"
#include "sim/fast/fast_simulator.h"

namespace weir::plan {

// An evaluator of search jobs; one per process. Never fails: errors of a
// candidate are reported in the `problem` of its estimate.
class Evaluator {
 public:
  explicit Evaluator(const Space& space) : space_(space), work_(space.base) {}

  SearchResult Evaluate(const SearchJob& job);

 private:
  SearchEstimate OfShape(Shape shape);
  SearchEstimate BoundsOf(const Scenario& scenario, double limit_bytes);
  SearchEstimate OrderOf(const Scenario& scenario);
  SearchEstimate RankOf(const Scenario& scenario);
  absl::StatusOr<const LayerPrice*> PriceOf(const Shape& shape);
  absl::Status CheckInterleaves(const Shape& shape) const;
  struct Totals {
    std::vector<sim::StageTotals> stages;
    double reserved_bytes = 0;
  };
  // Requires: work_ is resolved for the shape.
  absl::StatusOr<Totals> TotalsOf(const Shape& shape, int num_stages);
  absl::Status CutAndBound(Shape* shape, SearchEstimate* estimate);
  // Returns true if a recomputation mode that the space lists before the
  // shape's has the same costs.
  absl::StatusOr<bool> RecomputesInVain(const Shape& shape,
                                        const LayerPrice* price);

  // Returns the speed of the slowest GPU of each stage.
  absl::StatusOr<std::vector<double>> SpeedsOf(const Shape& shape);

  // Returns true if the space has the same recomputation in another form: all
  // blocks of every stage, or none.
  bool RecomputesAllOrNone(const Shape& shape) const;

  const Space& space_;
  scenarios::ResolvedScenario work_;
  // [GPUs, tensor, context, expert, expert tensor, microbatch size, recompute,
  // sequence parallel, sharding, tensor overlap, optimizer offload]
  std::map<std::tuple<int, int, int, int, int, int, models::Recompute, bool,
                      Sharding, TensorOverlap, double>,
           const LayerPrice*>
      prices_;
  std::vector<std::unique_ptr<const LayerPrice>> distinct_prices_;
  // [price, stages, cut, speeds of stages]
  std::map<std::tuple<const LayerPrice*, int, Cut, std::vector<double>>,
           std::optional<std::vector<int>>>
      cuts_;
  // Priced layers of the last shape, and its fields on which they depend.
  std::optional<sim::LayerTotals> layers_;
  Shape layers_of_;
  std::optional<Shape> last_shape_;  // without order and mode of reductions
  SearchEstimate last_estimate_;
  sim::Bounder bounder_;
  std::optional<sim::FastSimulator> fast_simulator_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_SEARCH_EVALUATE_H_
