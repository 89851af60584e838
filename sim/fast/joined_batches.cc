// SPDX-License-Identifier: Apache-2.0
#include "sim/fast/joined_batches.h"

#include <algorithm>

namespace weir::sim {

bool MayJoinBatches(const schedules::Schedule& schedule) {
  const schedules::WeightPolicy& weights = schedule.weights;
  return !schedule.flush && !schedule.forward_only &&
         schedule.num_routes() == 1 && schedule.resident_activations == 0 &&
         weights.prediction == schedules::WeightPolicy::Prediction::kNone &&
         weights.estimate_buffers == 0 && weights.predicted_copies == 0;
}

void JoinBatches(schedules::Schedule* schedule) {
  schedule->num_microbatches = schedule->total_microbatches();
  schedule->num_batches = 1;
  schedule->flush = true;
  schedule->weights = {.microbatches_per_update = schedule->num_microbatches};
}

bool AreOnlyPasses(const PipelineGraph& graph, const Costs& costs) {
  if (graph.passes.first_end.has_value() || graph.steps.first.has_value() ||
      graph.reductions.has_value() || graph.gathers.has_value() ||
      graph.exchanges.has_value() || graph.host_waits.has_value() ||
      graph.num_gpus() != graph.pipeline ||
      !graph.tasks.slowdowns.timers.empty()) {
    return false;
  }
  if (std::any_of(costs.stages.begin(), costs.stages.end(),
                  [](const StageCosts& stage) {
                    return stage.parameters.stash_bytes > 0;
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

Window WindowOfJoined(const schedules::Schedule& schedule,
                      const ShortenedSchedule& shortened,
                      const Steadiness& steadiness, const PipelineGraph& graph,
                      const Recording& recording, double makespan_seconds) {
  const Steadiness::Cut& cut = steadiness.cuts.front();
  const auto short_ends = recording.end_seconds();
  PipelineGraph whole;
  whole.tensor = graph.tensor;
  whole.pipeline = graph.pipeline;
  Recording times(NumActions(schedule));
  int32_t first = 0;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const auto num_actions =
        static_cast<int32_t>(schedule.rank_actions[rank].size());
    const Stretch& stretch = shortened.stretches[rank].front();
    const int32_t left_out =
        shortened.num_periods_left_out * stretch.period_actions;
    const int32_t period = cut.period_multiple * stretch.period_actions;
    const auto short_end = [&](int32_t position) {
      return short_ends[graph.ActionEnd(rank, position)];
    };
    whole.passes.first_action.push_back(first);
    for (int32_t i = 0; i < num_actions; ++i) {
      double& end = times.end_seconds()[first + i];
      if (i < stretch.end) {
        end = short_end(i);
      } else if (i < stretch.end + left_out) {
        const int32_t periods = (i - stretch.end) / period + 1;
        end = short_end(i - periods * period) +
              periods * cut.period_multiple * cut.period_seconds;
      } else {
        end = short_end(i - left_out) + steadiness.seconds_left_out;
      }
    }
    first += num_actions;
  }
  return FindWindow(schedule, whole, times, makespan_seconds);
}

}  // namespace weir::sim
