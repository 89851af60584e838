// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/dawnpiper.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/infinity.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "plan/papers/layer_sums.h"

namespace weir::plan {
namespace {

class DawnPiperSearch {
 public:
  DawnPiperSearch(const PlannerWork& work, const LayerSums& sums,
                  int num_stages, const DawnPiperOptions& options)
      : work_(work),
        sums_(sums),
        options_(options),
        num_stages_(num_stages),
        replicas_(static_cast<int>(work.devices.size()) / num_stages),
        memory_(LeastMemoryBytes(work)),
        speed_(SlowestSpeed(work)) {}

  DawnPiperStage Cheapest(int first, int end, int stage) const {
    DawnPiperStage best;
    best.seconds = kInfinity;
    if (!sums_.MayBeStage(first, end)) return best;
    const double plain = sums_.seconds(first, end) / speed_;
    if (options_.recompute != RECOMPUTE_FULL) {
      Try(first, end, stage, plain, StageKeeps::kActivations, &best);
    }
    if (options_.recompute != RECOMPUTE_NONE) {
      Try(first, end, stage, plain + sums_.forward(first, end) / speed_,
          StageKeeps::kInputs, &best);
    }
    if (options_.host_bytes_per_second > 0 &&
        options_.recompute != RECOMPUTE_FULL) {
      const double link = 2 * sums_.activation_bytes(first, end) /
                          options_.host_bytes_per_second;
      Try(first, end, stage, std::max(plain, link), StageKeeps::kSwapped,
          &best);
    }
    return best;
  }

  std::pair<int, int> Bracket(int first, int end, int first_stage,
                              int end_stage) const {
    const int middle = Middle(first_stage, end_stage);
    const int left = middle - first_stage, right = end_stage - middle;
    double best_seconds = kInfinity, best_bytes = kInfinity;
    int by_seconds = first + left, by_bytes = first + left;
    for (int cut = first + left; cut <= end - right; ++cut) {
      const double seconds = std::max(sums_.seconds(first, cut) / left,
                                      sums_.seconds(cut, end) / right);
      const double bytes = std::max(GroupBytes(first, cut, first_stage, middle),
                                    GroupBytes(cut, end, middle, end_stage));
      if (seconds < best_seconds) {
        best_seconds = seconds;
        by_seconds = cut;
      }
      if (bytes < best_bytes) {
        best_bytes = bytes;
        by_bytes = cut;
      }
    }
    return std::minmax(by_seconds, by_bytes);
  }

  // Returns the time of the slowest stage at the best cuts, for use by Append.
  double Best(int first, int end, int first_stage, int end_stage) {
    if (end - first < end_stage - first_stage) return kInfinity;
    if (end_stage - first_stage == 1) {
      return Cheapest(first, end, first_stage).seconds;
    }
    const auto [at, is_new] =
        known_.try_emplace({first, end, first_stage, end_stage}, kInfinity, -1);
    if (!is_new) return at->second.first;
    const int middle = Middle(first_stage, end_stage);
    auto [low, high] = Bracket(first, end, first_stage, end_stage);
    double best = kInfinity;
    int best_cut = -1;
    for (int cut = low; cut <= high; ++cut) {
      const double left = Best(first, cut, first_stage, middle);
      if (left >= best) continue;
      const double slowest = std::max(left, Best(cut, end, middle, end_stage));
      if (slowest >= best) continue;
      best = slowest;
      best_cut = cut;
    }
    known_[{first, end, first_stage, end_stage}] = {best, best_cut};
    return best;
  }

  void Append(int first, int end, int first_stage, int end_stage,
              std::vector<PlannedStage>* stages) {
    if (end_stage - first_stage > 1) {
      const int cut = known_[{first, end, first_stage, end_stage}].second;
      const int middle = Middle(first_stage, end_stage);
      Append(first, cut, first_stage, middle, stages);
      Append(cut, end, middle, end_stage, stages);
      return;
    }
    const DawnPiperStage cheapest = Cheapest(first, end, first_stage);
    PlannedStage stage;
    stage.first_layer = first;
    stage.end_layer = end;
    stage.recompute = cheapest.recompute;
    stage.swap = cheapest.swap;
    for (int i = 0; i < replicas_; ++i) {
      stage.devices.push_back(first_stage * replicas_ + i);
    }
    stages->push_back(stage);
  }

 private:
  static int Middle(int first_stage, int end_stage) {
    return first_stage + (end_stage - first_stage + 1) / 2;
  }
  double Kept(int stage) const {
    return std::min(num_stages_ - stage, work_.num_microbatches / replicas_);
  }
  double Versions(int stage) const {
    return options_.asynchronous ? num_stages_ - stage : 1;
  }

  void Try(int first, int end, int stage, double seconds, StageKeeps keeps,
           DawnPiperStage* best) const {
    const double bytes =
        sums_.memory_bytes(first, end, Kept(stage), Versions(stage), keeps);
    if (bytes > memory_ || seconds >= best->seconds) return;
    *best = {seconds, bytes, keeps == StageKeeps::kInputs,
             keeps == StageKeeps::kSwapped};
  }

  // Returns the bytes per stage of the group if its layers were divided evenly.
  double GroupBytes(int first, int end, int first_stage, int end_stage) const {
    double kept = 0, versions = 0;
    for (int stage = first_stage; stage < end_stage; ++stage) {
      kept += Kept(stage);
      versions += Versions(stage);
    }
    const int count = end_stage - first_stage;
    return sums_.memory_bytes(first, end, kept / count, versions / count) /
           count;
  }

  const PlannerWork& work_;
  const LayerSums& sums_;
  const DawnPiperOptions& options_;
  int num_stages_, replicas_;
  double memory_, speed_;
  std::map<std::tuple<int, int, int, int>, std::pair<double, int>> known_;
};

int NumStages(const PlannerWork& work, const DawnPiperOptions& options) {
  return options.num_stages > 0 ? options.num_stages
                                : static_cast<int>(work.devices.size());
}

absl::StatusOr<PlannedPipeline> PlanOnce(const PlannerWork& work,
                                         const DawnPiperOptions& options) {
  const LayerSums sums(work.layers);
  const int num_stages = NumStages(work, options);
  DawnPiperSearch search(work, sums, num_stages, options);
  PlannedPipeline plan;
  plan.objective_seconds = search.Best(0, sums.num_layers(), 0, num_stages);
  if (plan.objective_seconds == kInfinity) {
    return absl::NotFoundError(
        absl::StrCat("dawnpiper: no partition into ", num_stages,
                     " stages fits ", FormatBytes(LeastMemoryBytes(work))));
  }
  search.Append(0, sums.num_layers(), 0, num_stages, &plan.stages);
  plan.algorithm = "dawnpiper";
  plan.schedule = options.asynchronous ? "pipedream" : "1f1b";
  plan.chooses_recompute = true;
  plan.microbatch_size = work.microbatch_size;
  plan.num_microbatches = work.num_microbatches;
  return plan;
}

absl::Status Check(const PlannerWork& work, const DawnPiperOptions& options) {
  RETURN_IF_ERROR(CheckPlannerWork("dawnpiper", work));
  Problems problems("dawnpiper");
  const int num_devices = static_cast<int>(work.devices.size());
  const int num_stages = NumStages(work, options);
  if (num_stages > num_devices || num_devices % num_stages != 0) {
    problems.Add("num_stages",
                 absl::StrCat("is ", num_stages, ", expected a divisor of the ",
                              num_devices, " devices"));
  } else if (work.num_microbatches % (num_devices / num_stages) != 0) {
    problems.Add(
        "num_microbatches",
        absl::StrCat("is ", work.num_microbatches,
                     ", expected a multiple of the ", num_devices / num_stages,
                     " replicas of a stage"));
  }
  if (work.microbatch_size < 1) {
    problems.Add("microbatch_size", absl::StrCat("is ", work.microbatch_size,
                                                 ", expected at least 1"));
  }
  return problems.ToStatus();
}

}  // namespace

DawnPiperStage CheapestStage(const PlannerWork& work, int first, int end,
                             int stage, int num_stages,
                             const DawnPiperOptions& options) {
  const LayerSums sums(work.layers);
  return DawnPiperSearch(work, sums, num_stages, options)
      .Cheapest(first, end, stage);
}

std::pair<int, int> DawnPiperBracket(const PlannerWork& work, int first,
                                     int end, int first_stage, int end_stage,
                                     int num_stages,
                                     const DawnPiperOptions& options) {
  const LayerSums sums(work.layers);
  return DawnPiperSearch(work, sums, num_stages, options)
      .Bracket(first, end, first_stage, end_stage);
}

absl::StatusOr<PlannedPipeline> PlanDawnPiper(const PlannerWork& work,
                                              const DawnPiperOptions& options) {
  RETURN_IF_ERROR(Check(work, options));
  return PlanOnce(work, options);
}

absl::StatusOr<PlannedPipeline> LargestDawnPiperMicrobatch(
    const PlannerWork& work, const DawnPiperOptions& options) {
  RETURN_IF_ERROR(Check(work, options));
  const int replicas =
      static_cast<int>(work.devices.size()) / NumStages(work, options);
  const int samples = work.num_microbatches * work.microbatch_size / replicas;
  absl::StatusOr<PlannedPipeline> best =
      PlanOnce(WithMicrobatchSize(work, 1), options);
  if (!best.ok()) return best;
  // With few microbatches, fewer are saved, so a larger microbatch may fit
  // where a smaller one does not: tries every size, largest first.
  for (int size = samples; size > 1; --size) {
    if (samples % size != 0) continue;
    absl::StatusOr<PlannedPipeline> plan =
        PlanOnce(WithMicrobatchSize(work, size), options);
    if (plan.ok()) return plan;
  }
  return best;
}

PlannerWork WithMicrobatchSize(const PlannerWork& work, int microbatch_size) {
  PlannerWork other = work;
  const double factor =
      static_cast<double>(microbatch_size) / work.microbatch_size;
  for (PlannerLayer& layer : other.layers) {
    for (double PlannerLayer::*field :
         {&PlannerLayer::forward_seconds, &PlannerLayer::backward_seconds,
          &PlannerLayer::output_bytes, &PlannerLayer::activation_bytes,
          &PlannerLayer::input_bytes}) {
      layer.*field *= factor;
    }
  }
  other.microbatch_size = microbatch_size;
  other.num_microbatches =
      work.num_microbatches * work.microbatch_size / microbatch_size;
  return other;
}

}  // namespace weir::plan
