// SPDX-License-Identifier: Apache-2.0
#include "sim/fast/joined_batches.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace weir::sim {
namespace {

// Microbatches that are generated, per rank and at least: those that are kept
// until the times repeat, and some that can be cut out.
constexpr int kGeneratedPerRank = 5;
constexpr int kLeastGenerated = 64;

// The whole run of a shortened schedule with one stretch per rank.
class RestoredRun : public RunInBatches {
 public:
  RestoredRun(const schedules::Schedule& shape,
              const ShortenedSchedule& shortened, const Steadiness& steadiness,
              const PipelineGraph& graph, const Recording& recording)
      : shape_(shape),
        shortened_(shortened),
        cut_(steadiness.cuts.front()),
        seconds_left_out_(steadiness.seconds_left_out),
        graph_(graph),
        end_(recording.end_seconds()) {}

  const schedules::Schedule& shape() const override { return shape_; }
  int num_gpus() const override { return shape_.num_ranks; }
  int rank_of(int gpu) const override { return gpu; }
  int first_gpu(int rank) const override { return rank; }
  int32_t num_actions(int rank) const override {
    return static_cast<int32_t>(Kept(rank).size()) + LeftOut(rank);
  }

  schedules::Action ActionAt(int rank, int32_t position) const override {
    const Stretch& stretch = StretchOf(rank);
    if (position < stretch.end) return Kept(rank)[position];
    const int periods =
        std::min((position - stretch.end) / stretch.period_actions + 1,
                 shortened_.num_periods_left_out);
    schedules::Action action =
        Kept(rank)[position - periods * stretch.period_actions];
    action.microbatch += periods * shortened_.period_microbatches;
    return action;
  }

  double EndSeconds(int gpu, int32_t position) const override {
    const Stretch& stretch = StretchOf(gpu);
    if (position < stretch.end) return ShortEnd(gpu, position);
    const int32_t left_out = LeftOut(gpu);
    if (position >= stretch.end + left_out) {
      return ShortEnd(gpu, position - left_out) + seconds_left_out_;
    }
    // Times repeat after several periods of the order.
    const int32_t period = cut_.period_multiple * stretch.period_actions;
    const int32_t periods = (position - stretch.end) / period + 1;
    return ShortEnd(gpu, position - periods * period) +
           periods * cut_.period_multiple * cut_.period_seconds;
  }

  std::vector<int32_t> LastActions(int rank) const override {
    std::vector<int32_t> last(shape_.num_batches, -1);
    const std::vector<schedules::Action>& kept = Kept(rank);
    const Stretch& stretch = StretchOf(rank);
    const int32_t left_out = LeftOut(rank);
    const auto add = [&](const schedules::Action& action, int more,
                         int32_t position) {
      if (!schedules::IsCompute(action.op) ||
          action.op == schedules::Op::kForward) {
        return;
      }
      int32_t& at = last[(action.microbatch + more) / shape_.num_microbatches];
      at = std::max(at, position);
    };
    for (int32_t i = 0; i < stretch.end; ++i) add(kept[i], 0, i);
    for (int32_t i = stretch.end - stretch.period_actions; i < stretch.end;
         ++i) {
      for (int k = 1; k <= shortened_.num_periods_left_out; ++k) {
        add(kept[i], k * shortened_.period_microbatches,
            i + k * stretch.period_actions);
      }
    }
    const int microbatches =
        shortened_.num_periods_left_out * shortened_.period_microbatches;
    for (int32_t i = stretch.end; i < std::ssize(kept); ++i) {
      add(kept[i], microbatches, i + left_out);
    }
    for (size_t batch = 1; batch < last.size(); ++batch) {
      last[batch] = std::max(last[batch], last[batch - 1]);
    }
    return last;
  }

 private:
  const std::vector<schedules::Action>& Kept(int rank) const {
    return shortened_.schedule.rank_actions[rank];
  }
  const Stretch& StretchOf(int rank) const {
    return shortened_.stretches[rank].front();
  }
  int32_t LeftOut(int rank) const {
    return shortened_.num_periods_left_out * StretchOf(rank).period_actions;
  }
  double ShortEnd(int rank, int32_t position) const {
    return end_[graph_.ActionEnd(rank, position)];
  }

  const schedules::Schedule& shape_;
  const ShortenedSchedule& shortened_;
  const Steadiness::Cut& cut_;
  const double seconds_left_out_;
  const PipelineGraph& graph_;
  const std::span<const double> end_;
};

}  // namespace

int MicrobatchesNotGenerated(int total, int num_ranks) {
  const int kept = std::max(kGeneratedPerRank * num_ranks, kLeastGenerated);
  return std::max(total - kept, 0) / num_ranks * num_ranks;
}

bool MayJoinBatches(const schedules::Schedule& schedule) {
  return !schedule.flush && !schedule.forward_only &&
         schedule.num_routes() == 1 && schedule.resident_activations == 0;
}

void JoinBatches(schedules::Schedule* schedule) {
  schedule->num_microbatches = schedule->total_microbatches();
  schedule->num_batches = 1;
  schedule->flush = true;
  schedules::WeightPolicy& weights = schedule->weights;
  weights = {.microbatches_per_update = schedule->num_microbatches,
             .prediction = weights.prediction,
             .forward_distance = std::move(weights.forward_distance),
             .backward_distance = std::move(weights.backward_distance),
             .estimate_buffers = weights.estimate_buffers,
             .predicted_copies = weights.predicted_copies};
}

bool AreOnlyPasses(const schedules::Schedule& joined,
                   const PipelineGraph& graph, const Costs& costs) {
  if (graph.passes.first_end.has_value() || graph.steps.first.has_value() ||
      graph.reductions.has_value() || graph.gathers.has_value() ||
      graph.exchanges.has_value() || graph.host_waits.has_value() ||
      graph.num_gpus() != graph.pipeline ||
      !graph.tasks.slowdowns.timers.empty()) {
    return false;
  }
  const bool predicts_per_update =
      joined.weights.prediction ==
      schedules::WeightPolicy::Prediction::kFirstForwardOfUpdate;
  if (std::any_of(costs.stages.begin(), costs.stages.end(),
                  [&](const StageCosts& stage) {
                    return stage.parameters.stash_bytes > 0 ||
                           (predicts_per_update &&
                            stage.seconds.prediction > 0);
                  })) {
    return false;
  }
  for (int32_t task = 0; task < graph.tasks.num_tasks(); ++task) {
    if (!graph.tasks.is_timer(task)) return false;
  }
  return true;
}

double TasksOfJoined(const PipelineGraph& graph,
                     const schedules::Schedule& shortened,
                     int num_microbatches) {
  return static_cast<double>(graph.tasks.num_tasks()) * num_microbatches /
         shortened.num_microbatches;
}

Window WindowOfJoined(const schedules::Schedule& shape,
                      const ShortenedSchedule& shortened,
                      const Steadiness& steadiness, const PipelineGraph& graph,
                      const Recording& recording, double makespan_seconds) {
  return FindWindow(RestoredRun(shape, shortened, steadiness, graph, recording),
                    makespan_seconds);
}

}  // namespace weir::sim
