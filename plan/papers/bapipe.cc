// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/bapipe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "models/partition_exact.h"
#include "plan/papers/layer_sums.h"

namespace weir {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// One order on pipelines of one length.
class BaPipeSearch {
 public:
  BaPipeSearch(const PlannerWork& work, const LayerSums& sums,
               BaPipeOrder order, int num_stages)
      : work_(work),
        sums_(sums),
        order_(order),
        num_stages_(num_stages),
        replicas_(static_cast<int>(work.devices.size()) / num_stages) {}

  // Empty when nothing fits.
  std::vector<PlannedStage> Run() const {
    if (num_stages_ > sums_.num_layers()) return {};
    std::vector<PlannedStage> best;
    double best_seconds = kNever;
    for (bool fits : {false, true}) {
      CutProblem problem;
      problem.num_layers = sums_.num_layers();
      problem.num_devices = num_stages_;
      problem.stage_seconds = [&](const CutStage& stage) {
        const int first = stage.first_layer, end = stage.end_layer;
        if (!sums_.MayBeStage(first, end) ||
            (fits && !Fits(stage.first_device, first, end))) {
          return kNever;
        }
        return StageSeconds(stage.first_device, first, end);
      };
      const absl::StatusOr<ExactCut> cut = CutExactly("bapipe", problem);
      if (!cut.ok()) continue;
      const std::vector<PlannedStage> moved = Move(Stages(cut->stages));
      const double seconds = Seconds(moved);
      if (seconds < best_seconds) {
        best_seconds = seconds;
        best = moved;
      }
    }
    return best;
  }

 private:
  double Speed(int stage) const {
    double speed = kNever;
    for (int i = 0; i < replicas_; ++i) {
      speed = std::min(speed, work_.devices[stage * replicas_ + i].speed);
    }
    return speed;
  }
  double StageSeconds(int stage, int first, int end) const {
    return sums_.seconds(first, end) / Speed(stage);
  }
  bool Fits(int stage, int first, int end) const {
    double memory = kNever;
    for (int i = 0; i < replicas_; ++i) {
      memory =
          std::min(memory, work_.devices[stage * replicas_ + i].memory_bytes);
    }
    const int kept = BaPipeKept(order_, work_.num_microbatches / replicas_,
                                num_stages_, stage);
    return sums_.memory_bytes(first, end, kept) <= memory;
  }

  std::vector<PlannedStage> Stages(const std::vector<CutStage>& cut) const {
    std::vector<PlannedStage> stages(num_stages_);
    for (int s = 0; s < num_stages_; ++s) {
      stages[s].first_layer = cut[s].first_layer;
      stages[s].end_layer = cut[s].end_layer;
      for (int i = 0; i < replicas_; ++i) {
        stages[s].devices.push_back(s * replicas_ + i);
      }
    }
    return stages;
  }

  // Infinite for what is no legal plan.
  double Seconds(const std::vector<PlannedStage>& stages) const {
    for (int s = 0; s < num_stages_; ++s) {
      const PlannedStage& stage = stages[s];
      if (stage.first_layer >= stage.end_layer ||
          !sums_.MayBeStage(stage.first_layer, stage.end_layer) ||
          !Fits(s, stage.first_layer, stage.end_layer)) {
        return kNever;
      }
    }
    return BaPipeSeconds(order_, work_, stages);
  }

  std::vector<PlannedStage> Move(std::vector<PlannedStage> stages) const {
    double seconds = Seconds(stages);
    for (bool moved = true; moved;) {
      moved = false;
      for (int cut = 1; cut < num_stages_; ++cut) {
        for (int by : {-1, 1}) {
          std::vector<PlannedStage> other = stages;
          other[cut].first_layer = other[cut - 1].end_layer += by;
          const double other_seconds = Seconds(other);
          if (other_seconds >= seconds) continue;
          stages = other;
          seconds = other_seconds;
          moved = true;
        }
      }
    }
    return stages;
  }

  const PlannerWork& work_;
  const LayerSums& sums_;
  BaPipeOrder order_;
  int num_stages_, replicas_;
};

double AllReduceSeconds(const PlannerWork& work, const LayerSums& sums,
                        const PlannedStage& stage) {
  const int replicas = static_cast<int>(stage.devices.size());
  if (replicas == 1) return 0;
  double rate = kNever;
  for (int i = 0; i < replicas; ++i) {
    rate = std::min(rate,
                    work.bytes_per_second[stage.devices[i]]
                                         [stage.devices[(i + 1) % replicas]]);
  }
  return 2.0 * (replicas - 1) / replicas *
         sums.gradient_bytes(stage.first_layer, stage.end_layer) / rate;
}

}  // namespace

const char* Name(BaPipeOrder order) {
  switch (order) {
    case BaPipeOrder::kAsynchronous:
      return "bapipe-as";
    case BaPipeOrder::kNoOverlap:
      return "bapipe-sno";
    case BaPipeOrder::kOverlap:
      return "bapipe-so";
  }
  return "";
}

double BaPipeSeconds(BaPipeOrder order, int num_microbatches, int num_stages,
                     double forward_backward_seconds, double transfer_seconds) {
  const int m = num_microbatches, n = num_stages;
  const double compute = (m + n - 1.0) * forward_backward_seconds;
  switch (order) {
    case BaPipeOrder::kAsynchronous:
      return compute;
    case BaPipeOrder::kNoOverlap:
      return compute +
             (n + m - 2 - (m - 1 + n - 1) / n) * 2.0 * transfer_seconds;
    case BaPipeOrder::kOverlap:
      return compute + (n - 1) * 2.0 * transfer_seconds;
  }
  return compute;
}

int BaPipeKept(BaPipeOrder order, int num_microbatches, int num_stages,
               int stage) {
  const int one = num_stages - stage;
  return std::min(order == BaPipeOrder::kOverlap ? 2 * one : one,
                  num_microbatches);
}

double BaPipeSeconds(BaPipeOrder order, const PlannerWork& work,
                     const std::vector<PlannedStage>& stages) {
  const LayerSums sums(work.layers);
  double compute = 0, transfer = 0, all_reduce = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    const PlannedStage& stage = stages[s];
    all_reduce = std::max(all_reduce, AllReduceSeconds(work, sums, stage));
    for (size_t i = 0; i < stage.devices.size(); ++i) {
      compute =
          std::max(compute, sums.seconds(stage.first_layer, stage.end_layer) /
                                work.devices[stage.devices[i]].speed);
      if (s == 0) continue;
      transfer =
          std::max(transfer, sums.cut_bytes(stage.first_layer) /
                                 work.bytes_per_second[stages[s - 1].devices[i]]
                                                      [stage.devices[i]]);
    }
  }
  if (order == BaPipeOrder::kOverlap && 2 * transfer > compute) return kNever;
  const int replicas = static_cast<int>(stages[0].devices.size());
  return BaPipeSeconds(order, work.num_microbatches / replicas,
                       static_cast<int>(stages.size()), compute, transfer) +
         all_reduce;
}

absl::StatusOr<PlannedPipeline> PlanBaPipe(const PlannerWork& work,
                                           const BaPipeOptions& options) {
  RETURN_IF_ERROR(CheckPlannerWork("bapipe", work));
  const LayerSums sums(work.layers);
  std::vector<BaPipeOrder> orders = {BaPipeOrder::kNoOverlap,
                                     BaPipeOrder::kOverlap};
  if (options.asynchronous_hardware) orders = {BaPipeOrder::kAsynchronous};
  const int num_devices = static_cast<int>(work.devices.size());
  PlannedPipeline best;
  best.objective_seconds = kNever;
  for (int num_stages = num_devices; num_stages >= 1; --num_stages) {
    const int replicas = num_devices / num_stages;
    if (num_devices % num_stages != 0 ||
        work.num_microbatches % replicas != 0) {
      continue;
    }
    for (BaPipeOrder order : orders) {
      std::vector<PlannedStage> stages =
          BaPipeSearch(work, sums, order, num_stages).Run();
      if (stages.empty()) continue;
      const double seconds = BaPipeSeconds(order, work, stages);
      if (seconds >= best.objective_seconds) continue;
      best.objective_seconds = seconds;
      best.schedule = Name(order);
      best.stages = std::move(stages);
    }
  }
  if (best.stages.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "bapipe: no cut of the ", work.layers.size(), " layers on ",
        num_devices, " devices fits ", FormatBytes(LeastMemoryBytes(work))));
  }
  best.algorithm = "bapipe";
  best.num_microbatches = work.num_microbatches;
  return best;
}

}  // namespace weir
