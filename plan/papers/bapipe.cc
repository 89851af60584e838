// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/bapipe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/infinity.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "models/partition_exact.h"
#include "plan/papers/layer_sums.h"

namespace weir::plan {
namespace {

double AllReduceSeconds(const PlannerWork& work, const LayerSums& sums,
                        const PlannedStage& stage) {
  const int replicas = static_cast<int>(stage.devices.size());
  if (replicas == 1) return 0;
  double rate = kInfinity;
  for (int i = 0; i < replicas; ++i) {
    rate = std::min(rate,
                    work.bytes_per_second[stage.devices[i]]
                                         [stage.devices[(i + 1) % replicas]]);
  }
  return 2.0 * (replicas - 1) / replicas *
         sums.gradient_bytes(stage.first_layer, stage.end_layer) / rate;
}

// Maxima over all stages and cuts, in seconds.
struct Slowest {
  double compute = 0, forward = 0, transfer = 0, all_reduce = 0;
};

Slowest SlowestOf(const PlannerWork& work,
                  const std::vector<PlannedStage>& stages) {
  const LayerSums sums(work.layers);
  Slowest slowest;
  const auto raise = [](double seconds, double* most) {
    *most = std::max(*most, seconds);
  };
  for (size_t s = 0; s < stages.size(); ++s) {
    const PlannedStage& stage = stages[s];
    const int first = stage.first_layer, end = stage.end_layer;
    raise(AllReduceSeconds(work, sums, stage), &slowest.all_reduce);
    for (size_t i = 0; i < stage.devices.size(); ++i) {
      const int device = stage.devices[i];
      const double speed = work.devices[device].speed;
      raise(sums.seconds(first, end) / speed, &slowest.compute);
      raise(sums.forward(first, end) / speed, &slowest.forward);
      if (s == 0) continue;
      raise(sums.cut_bytes(first) /
                work.bytes_per_second[stages[s - 1].devices[i]][device],
            &slowest.transfer);
    }
  }
  return slowest;
}

// Returns true if the passes hide the transfers: the forward for 1F1B-AS, both
// passes for the other two orders that overlap.
bool Hides(BaPipeOrder order, const Slowest& slowest) {
  if (order == BaPipeOrder::kNoOverlap) return true;
  return order == BaPipeOrder::kAsynchronous
             ? slowest.transfer <= slowest.forward
             : 2 * slowest.transfer <= slowest.compute;
}

// The search for one order on pipelines of one length.
class BaPipeSearch {
 public:
  BaPipeSearch(const PlannerWork& work, const LayerSums& sums,
               BaPipeOrder order, int num_stages, bool must_hide)
      : work_(work),
        sums_(sums),
        order_(order),
        must_hide_(must_hide),
        num_stages_(num_stages),
        replicas_(static_cast<int>(work.devices.size()) / num_stages),
        speed_(num_stages, kInfinity),
        memory_(num_stages, kInfinity) {
    for (int i = 0; i < num_stages * replicas_; ++i) {
      double& speed = speed_[i / replicas_];
      double& memory = memory_[i / replicas_];
      speed = std::min(speed, work.devices[i].speed);
      memory = std::min(memory, work.devices[i].memory_bytes);
    }
  }

  // Returns an empty vector if no cut fits.
  std::vector<PlannedStage> Run() const {
    if (num_stages_ > sums_.num_layers()) return {};
    std::vector<PlannedStage> best;
    double best_seconds = kInfinity;
    const auto improve = [&](const std::vector<PlannedStage>& stages) {
      if (stages.empty()) return;
      const std::vector<PlannedStage> moved = Move(stages);
      const double seconds = Seconds(moved);
      if (seconds >= best_seconds) return;
      best_seconds = seconds;
      best = moved;
    };
    for (bool fits : {false, true}) {
      const std::vector<PlannedStage> balanced = Balanced(fits, kInfinity);
      improve(balanced);
      if (balanced.empty() || !must_hide_) continue;
      const Slowest slowest = SlowestOf(work_, balanced);
      if (Hides(order_, slowest)) continue;
      // Transfers that these passes hide are also hidden by longer ones.
      improve(Balanced(fits, order_ == BaPipeOrder::kAsynchronous
                                 ? slowest.forward
                                 : slowest.compute / 2));
    }
    return best;
  }

 private:
  // Returns the cut with the fastest slowest stage, if `fits` among those that
  // fit, and with no transfer above `most_transfer` seconds; empty if there is
  // none.
  std::vector<PlannedStage> Balanced(bool fits, double most_transfer) const {
    models::CutProblem problem;
    problem.num_layers = sums_.num_layers();
    problem.num_devices = num_stages_;
    problem.stage_seconds = [&](const models::CutStage& stage) {
      const int first = stage.first_layer, end = stage.end_layer;
      if (!sums_.MayBeStage(first, end) ||
          (fits && !Fits(stage.first_device, first, end))) {
        return kInfinity;
      }
      return StageSeconds(stage.first_device, first, end);
    };
    if (most_transfer < kInfinity) {
      problem.transfer_seconds = [&](const models::CutStage& stage) {
        double seconds = 0;
        for (int i = 0; i < replicas_; ++i) {
          const int to = stage.first_device * replicas_ + i;
          seconds =
              std::max(seconds, sums_.cut_bytes(stage.first_layer) /
                                    work_.bytes_per_second[to - replicas_][to]);
        }
        return seconds > most_transfer ? kInfinity : 0;
      };
    }
    const absl::StatusOr<models::ExactCut> cut =
        models::CutExactly("bapipe", problem);
    if (!cut.ok()) return {};
    return Stages(cut->stages);
  }

  double StageSeconds(int stage, int first, int end) const {
    return sums_.seconds(first, end) / speed_[stage];
  }
  bool Fits(int stage, int first, int end) const {
    const int kept = BaPipeKept(order_, work_.num_microbatches / replicas_,
                                num_stages_, stage);
    return sums_.memory_bytes(first, end, kept) <= memory_[stage];
  }

  std::vector<PlannedStage> Stages(
      const std::vector<models::CutStage>& cut) const {
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

  // Returns infinity for an invalid plan.
  double Seconds(const std::vector<PlannedStage>& stages) const {
    for (int s = 0; s < num_stages_; ++s) {
      const PlannedStage& stage = stages[s];
      if (stage.first_layer >= stage.end_layer ||
          !sums_.MayBeStage(stage.first_layer, stage.end_layer) ||
          !Fits(s, stage.first_layer, stage.end_layer)) {
        return kInfinity;
      }
    }
    if (must_hide_ && !Hides(order_, SlowestOf(work_, stages)))
      return kInfinity;
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
  bool must_hide_;  // for 1F1B-AS; other overlapping orders always must
  int num_stages_, replicas_;
  std::vector<double> speed_, memory_;  // minima by [stage]
};

}  // namespace

const char* Name(BaPipeOrder order) {
  switch (order) {
    case BaPipeOrder::kAsynchronous:
      return "bapipe-as";
    case BaPipeOrder::kParallel:
      return "bapipe-fbp-as";
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
    case BaPipeOrder::kParallel:
      return compute;
    case BaPipeOrder::kNoOverlap: {
      const int num_transfers = n + m - 2 - (m - 1 + n - 1) / n;
      return compute + num_transfers * 2.0 * transfer_seconds;
    }
    case BaPipeOrder::kOverlap:
      return compute + (n - 1) * 2.0 * transfer_seconds;
  }
  return compute;
}

int BaPipeKept(BaPipeOrder order, int num_microbatches, int num_stages,
               int stage) {
  const int one = num_stages - stage;
  const bool twice =
      order == BaPipeOrder::kOverlap || order == BaPipeOrder::kParallel;
  return std::min(twice ? 2 * one : one, num_microbatches);
}

namespace {

// Tries each order on each number of stages. Leaves `best` unchanged if nothing
// is feasible. `must_hide`: 1F1B-AS must hide its transfers, too, and cuts that
// do are searched for.
void TryOrders(const PlannerWork& work, const std::vector<BaPipeOrder>& orders,
               bool must_hide, PlannedPipeline* best) {
  const LayerSums sums(work.layers);
  const int num_devices = static_cast<int>(work.devices.size());
  for (int num_stages = num_devices; num_stages >= 1; --num_stages) {
    const int replicas = num_devices / num_stages;
    if (num_devices % num_stages != 0 ||
        work.num_microbatches % replicas != 0) {
      continue;
    }
    for (BaPipeOrder order : orders) {
      std::vector<PlannedStage> stages =
          BaPipeSearch(work, sums, order, num_stages, must_hide).Run();
      if (stages.empty()) continue;
      const double seconds = BaPipeSeconds(order, work, stages);
      if (seconds >= best->objective_seconds) continue;
      best->objective_seconds = seconds;
      best->schedule = Name(order);
      best->stages = std::move(stages);
    }
  }
}

}  // namespace

double BaPipeSeconds(BaPipeOrder order, const PlannerWork& work,
                     const std::vector<PlannedStage>& stages) {
  const Slowest slowest = SlowestOf(work, stages);
  if (order != BaPipeOrder::kAsynchronous && !Hides(order, slowest)) {
    return kInfinity;
  }
  const int replicas = static_cast<int>(stages[0].devices.size());
  return BaPipeSeconds(order, work.num_microbatches / replicas,
                       static_cast<int>(stages.size()), slowest.compute,
                       slowest.transfer) +
         slowest.all_reduce;
}

absl::StatusOr<PlannedPipeline> PlanBaPipe(const PlannerWork& work,
                                           const BaPipeOptions& options) {
  RETURN_IF_ERROR(CheckPlannerWork("bapipe", work));
  PlannedPipeline best;
  best.objective_seconds = kInfinity;
  using Order = BaPipeOrder;
  if (!options.asynchronous_hardware) {
    std::vector<Order> orders = {Order::kNoOverlap};
    if (!options.blocking_transfers) orders.push_back(Order::kOverlap);
    TryOrders(work, orders, false, &best);
    if (options.blocking_transfers) {
      best.notes.push_back(
          "transfers are blocking, so 1F1B-SO was not considered");
    }
  } else {
    std::vector<Order> orders = {Order::kAsynchronous};
    if (options.parallel_passes) orders.push_back(Order::kParallel);
    TryOrders(work, orders, /*must_hide=*/true, &best);
    if (best.stages.empty()) {
      TryOrders(work, {Order::kAsynchronous}, /*must_hide=*/false, &best);
      best.notes.push_back("transfers are not hidden by any order");
    }
  }
  if (best.stages.empty()) {
    return absl::NotFoundError(
        absl::StrCat("bapipe: no partition of the ", work.layers.size(),
                     " layers on ", work.devices.size(), " devices fits ",
                     FormatBytes(LeastMemoryBytes(work))));
  }
  best.algorithm = "bapipe";
  best.num_microbatches = work.num_microbatches;
  return best;
}

}  // namespace weir::plan
