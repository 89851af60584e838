// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/dapple.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/infinity.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "plan/papers/dapple_length.h"
#include "plan/papers/layer_sums.h"

namespace weir::plan {
namespace {

constexpr int kManyDappleDevices = 16, kFewUnits = 8;
constexpr size_t kMaxStages = 16, kFewSets = 4;

// Searches for the best plan with one `spread`.
class DappleSearch {
 public:
  DappleSearch(const PlannerWork& work, const LayerSums& sums, int spread,
               const DappleOptions& options)
      : sums_(sums),
        servers_(ServersOf(work)),
        length_(work, sums, spread, options),
        spread_(spread),
        memory_(LeastMemoryBytes(work)),
        step_(StepOf(static_cast<int>(work.devices.size()), spread)),
        units_(static_cast<int>(work.devices.size()) / spread) {}

  // Lowers `best`, which prunes states that are no better.
  void Run(bool straight, double* best, std::vector<PlacedStage>* best_stages) {
    const int n = sums_.num_layers();
    cells_.assign(n + 1, std::vector<Cells>(units_ + 1));
    cells_[0][0][Counts(servers_.sizes.size())] = {};
    for (int layer = 0; layer < n; ++layer) {
      for (int used = 0; used < units_; ++used) {
        for (const auto* at : Kept(cells_[layer][used])) {
          Finish(at->second, layer, used, at->first, straight, best,
                 best_stages);
          Extend(at->second, layer, used, at->first, straight, *best);
        }
      }
    }
  }

 private:
  using Counts = std::vector<int>;
  struct Cell {
    double value = 0;
    double least = 0;  // lower bound of all plans with this prefix
    PlacedStages stages;
  };
  using Cells = std::map<Counts, Cell>;

  // Returns all cells, or with many devices the best few.
  std::vector<const Cells::value_type*> Kept(const Cells& cells) const {
    std::vector<const Cells::value_type*> kept;
    for (const auto& cell : cells) kept.push_back(&cell);
    if (spread_ * units_ <= kManyDappleDevices || kept.size() <= kFewSets) {
      return kept;
    }
    std::stable_sort(kept.begin(), kept.end(),
                     [](const auto* one, const auto* other) {
                       return one->second.value < other->second.value;
                     });
    kept.resize(kFewSets);
    return kept;
  }

  // Returns the number of units that a stage takes at a time: with many
  // devices, the smallest divisor of `units` that leaves few groups.
  static int StepOf(int num_devices, int spread) {
    const int units = num_devices / spread;
    const int most =
        num_devices > kManyDappleDevices ? kFewUnits : kManyDappleDevices;
    int step = 1;
    while (units % step != 0 || units / step > most) ++step;
    return step;
  }

  bool Fits(int first, int end, int units) const {
    return sums_.MayBeStage(first, end) &&
           sums_.memory_bytes(first, end, 1.0 / units) <= memory_;
  }

  // Completes the cell with all remaining layers as the last stage.
  void Finish(const Cell& cell, int layer, int used, const Counts& occupied,
              bool straight, double* best,
              std::vector<PlacedStage>* best_stages) const {
    const int n = sums_.num_layers();
    const int units = straight ? 1 : units_ - used;
    if (!Fits(layer, n, units)) return;
    for (Counts& counts :
         DapplePlacements(servers_.sizes, occupied, units * spread_)) {
      PlacedStage last = {layer, n, units, std::move(counts)};
      length_.Place(cell.stages, &last);
      length_.Price(&last);
      PlacedStages stages = cell.stages;
      stages.push_back(&last);
      const double seconds = length_.Seconds(stages);
      if (seconds >= *best) continue;
      *best = seconds;
      best_stages->clear();
      for (const PlacedStage* stage : stages) best_stages->push_back(*stage);
    }
  }

  void Extend(const Cell& cell, int layer, int used, const Counts& occupied,
              bool straight, double best) {
    if (cell.stages.size() + 2 > kMaxStages) return;
    const int step = straight ? 1 : step_;
    const int most =
        straight ? std::min(1, units_ - used - 1) : units_ - used - 1;
    for (int units = step; units <= most; units += step) {
      for (Counts& counts :
           DapplePlacements(servers_.sizes, occupied, units * spread_)) {
        Counts sum = occupied;
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += counts[i];
        PlacedStage stage = {layer, 0, units, std::move(counts)};
        ExtendBy(cell, sum, used + units, best, &stage);
      }
    }
  }

  // Extends the cell by the stage with every possible number of layers.
  void ExtendBy(const Cell& cell, const Counts& occupied, int used, double best,
                PlacedStage* stage) {
    length_.Place(cell.stages, stage);
    for (stage->end = stage->first + 1; stage->end < sums_.num_layers();
         ++stage->end) {
      if (!Fits(stage->first, stage->end, stage->units)) continue;
      length_.Price(stage);
      const double least = std::max(cell.least, length_.LeastSeconds(*stage));
      if (length_.LeastOfPasses(*stage) >= best) return;
      if (least >= best) continue;
      scratch_ = cell.stages;
      scratch_.push_back(stage);
      const double value = length_.Seconds(scratch_);
      Cells& cells = cells_[stage->end][used];
      const auto at = cells.find(occupied);
      if (at != cells.end() && value >= at->second.value) continue;
      scratch_.back() = &kept_.emplace_back(*stage);
      cells[occupied] = {value, least, scratch_};
    }
  }

  const LayerSums& sums_;
  Servers servers_;
  DappleLength length_;
  int spread_;
  double memory_;
  int step_, units_;
  std::vector<std::vector<Cells>> cells_;  // [layers][units]
  std::deque<PlacedStage> kept_;           // referenced by `cells_`
  PlacedStages scratch_;
};

// Assigns devices in the order of their servers' lists.
std::vector<PlannedStage> StagesOf(const std::vector<PlacedStage>& placed,
                                   const Servers& servers) {
  std::vector<size_t> next(servers.sizes.size());
  std::vector<PlannedStage> stages;
  for (const PlacedStage& one : placed) {
    PlannedStage& stage = stages.emplace_back();
    stage.first_layer = one.first;
    stage.end_layer = one.end;
    for (size_t i = 0; i < one.counts.size(); ++i) {
      for (int k = 0; k < one.counts[i]; ++k) {
        stage.devices.push_back(servers.devices[i][next[i]++]);
      }
    }
  }
  return stages;
}

// Chooses the schedule by the ACR rule and the memory.
std::string ScheduleOf(const PlannerWork& work, const LayerSums& sums,
                       const DappleLength& length,
                       const std::vector<PlacedStage>& placed,
                       const DappleOptions& options) {
  PlacedStages pipeline;
  for (const PlacedStage& stage : placed) pipeline.push_back(&stage);
  const int num_stages = static_cast<int>(placed.size());
  double limit = kInfinity;
  for (const PlacedStage& stage : placed) {
    const double activation =
        sums.activation_bytes(stage.first, stage.end) / stage.units;
    const double room =
        LeastMemoryBytes(work) - sums.state_bytes(stage.first, stage.end);
    if (activation > 0) limit = std::min(limit, room / activation);
  }
  const bool hides = length.AcrOf(pipeline) >= options.policy_b_ratio;
  const bool is_b = hides && num_stages > 1 && limit > num_stages;
  const int most = is_b ? 2 * num_stages - 1 : num_stages;
  std::string name = is_b ? "dapple-pb" : "dapple-pa";
  if (limit < most) {
    absl::StrAppend(&name,
                    ":memory-limit=", std::max(1, static_cast<int>(limit)));
  }
  return name;
}

}  // namespace

absl::StatusOr<PlannedPipeline> PlanDapple(const PlannerWork& work,
                                           const DappleOptions& given) {
  RETURN_IF_ERROR(CheckPlannerWork("dapple", work));
  const DappleOptions options = WithRates(work, given);
  const LayerSums sums(work.layers);
  const int num_devices = static_cast<int>(work.devices.size());
  double best = kInfinity;
  int best_spread = 0;
  std::vector<PlacedStage> best_stages;
  for (int spread = num_devices; spread >= 1; --spread) {
    if (num_devices % spread != 0 || work.num_microbatches % spread != 0) {
      continue;
    }
    const double before = best;
    DappleSearch search(work, sums, spread, options);
    search.Run(/*straight=*/true, &best, &best_stages);
    if (!options.equal_replicas) {
      search.Run(/*straight=*/false, &best, &best_stages);
    }
    if (best < before) best_spread = spread;
  }
  if (best_stages.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "dapple: no partition of the ", work.layers.size(), " layers on ",
        num_devices, " devices fits ", FormatBytes(LeastMemoryBytes(work))));
  }
  const DappleLength length(work, sums, best_spread, options);
  PlannedPipeline plan;
  plan.algorithm = "dapple";
  plan.schedule = ScheduleOf(work, sums, length, best_stages, options);
  plan.objective_seconds = best;
  plan.stages = StagesOf(best_stages, ServersOf(work));
  plan.num_microbatches = work.num_microbatches;
  plan.notes.push_back(
      absl::StrCat("GPUs are assigned in groups of ", best_spread));
  return plan;
}

}  // namespace weir::plan
