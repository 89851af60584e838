// SPDX-License-Identifier: Apache-2.0
#include "models/partition_exact.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/infinity.h"
#include "base/problems.h"
#include "base/status_macros.h"

namespace weir::models {
namespace {

// Dynamic program from the last layer to the first, so that the stages can be
// read forward.
class CutTable {
 public:
  explicit CutTable(const CutProblem& problem)
      : problem_(problem),
        best_((size_t{1} + problem.num_layers) * (problem.num_devices + 1),
              kInfinity),
        next_(best_.size()) {}

  // Returns the smallest possible maximum cost of the stages and transfers of a
  // cut. Fills best_[layer, device] with that of the layers and devices from
  // there on.
  double LeastLargest() {
    Fill(kInfinity, [](double stage, double transfer, double rest) {
      return std::max({stage, transfer, rest});
    });
    return best_[Index(0, 0)];
  }

  // Returns the smallest sum of costs over all cuts without a cost above
  // `limit`.
  double LeastSum(double limit) {
    Fill(limit, [](double stage, double transfer, double rest) {
      return stage + transfer + rest;
    });
    return best_[Index(0, 0)];
  }

  std::vector<CutStage> Stages() const {
    std::vector<CutStage> stages;
    int layer = 0, device = 0;
    while (layer < problem_.num_layers) {
      stages.push_back(next_[Index(layer, device)]);
      layer = stages.back().end_layer;
      device = stages.back().end_device;
    }
    return stages;
  }

 private:
  size_t Index(int layer, int device) const {
    return static_cast<size_t>(layer) * (problem_.num_devices + 1) + device;
  }

  template <typename Join>
  void Fill(double limit, Join join) {
    std::fill(best_.begin(), best_.end(), kInfinity);
    for (int device = 0; device <= problem_.num_devices; ++device) {
      if (device == problem_.num_devices || problem_.may_leave_devices) {
        best_[Index(problem_.num_layers, device)] = 0;
      }
    }
    for (int layer = problem_.num_layers - 1; layer >= 0; --layer) {
      // The first stage starts at the first device, all others after it.
      const int first = layer == 0 ? 0 : 1;
      const int last = layer == 0 ? 0 : problem_.num_devices - 1;
      for (int device = first; device <= last; ++device) {
        FillFrom(layer, device, limit, join);
      }
    }
  }

  template <typename Join>
  void FillFrom(int layer, int device, double limit, Join join) {
    const size_t here = Index(layer, device);
    CutStage stage{layer, 0, device, 0};
    const int most =
        std::min(problem_.max_replicas, problem_.num_devices - device);
    for (stage.end_layer = layer + 1; stage.end_layer <= problem_.num_layers;
         ++stage.end_layer) {
      for (int replicas = 1; replicas <= most; ++replicas) {
        stage.end_device = device + replicas;
        const double rest = best_[Index(stage.end_layer, stage.end_device)];
        if (rest >= best_[here]) continue;
        const double seconds = problem_.stage_seconds(stage);
        const double transfer =
            layer > 0 && problem_.transfer_seconds != nullptr
                ? problem_.transfer_seconds(stage)
                : 0;
        if (!(seconds <= limit) || !(transfer <= limit)) continue;
        const double joined = join(seconds, transfer, rest);
        if (joined < best_[here]) {
          best_[here] = joined;
          next_[here] = stage;
        }
      }
    }
  }

  const CutProblem& problem_;
  std::vector<double> best_;    // [Index]
  std::vector<CutStage> next_;  // [Index] the stage that starts there
};

}  // namespace

absl::StatusOr<ExactCut> CutExactly(absl::string_view label,
                                    const CutProblem& problem) {
  Problems problems(label);
  problems.CheckRange("num_layers", problem.num_layers, 1, 1e6);
  problems.CheckRange("num_devices", problem.num_devices, 1, 1e6);
  problems.CheckRange("max_replicas", problem.max_replicas, 1, 1e6);
  RETURN_IF_ERROR(problems.ToStatus());
  CutTable table(problem);
  ExactCut cut;
  cut.largest_seconds = table.LeastLargest();
  if (std::isinf(cut.largest_seconds)) {
    return absl::NotFoundError(absl::StrCat(label, ": no allowed partition of ",
                                            problem.num_layers, " layers for ",
                                            problem.num_devices, " devices"));
  }
  cut.sum_seconds = table.LeastSum(cut.largest_seconds);
  cut.stages = table.Stages();
  return cut;
}

}  // namespace weir::models
