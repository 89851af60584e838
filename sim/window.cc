// SPDX-License-Identifier: Apache-2.0
#include "sim/window.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace weir {
namespace {

// Relative difference up to which two periods count as equal: above what
// rounding adds over a long run, far below anything that matters.
constexpr double kTolerance = 1e-7;
constexpr int kMaxPeriodBatches = 4;

// Shared links can make the time per batch wander for ever. Its mean is then
// what there is to know, once it has stopped to drift.
constexpr double kStationaryTolerance = 5e-3;
constexpr int kMinStationaryBatches = 48;

int DrainBatches(int num_ranks, int num_microbatches) {
  return (num_ranks + num_microbatches - 1) / num_microbatches;
}

// [gpu][batch]: when the GPU ended the last backward of the batch.
std::vector<std::vector<double>> BatchEnds(const Schedule& schedule,
                                           const PipelineGraph& graph,
                                           const Recording& recording) {
  std::vector<std::vector<int32_t>> last(
      schedule.num_ranks, std::vector<int32_t>(schedule.num_batches, 0));
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const auto& actions = schedule.rank_actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].op == Op::kForward) continue;
      last[rank][actions[i].microbatch / schedule.num_microbatches] =
          static_cast<int32_t>(i);
    }
  }
  std::vector<std::vector<double>> ends(graph.num_gpus());
  for (int gpu = 0; gpu < graph.num_gpus(); ++gpu) {
    for (int32_t position : last[graph.rank_of(gpu)]) {
      ends[gpu].push_back(
          recording.end_seconds()[graph.ActionEnd(gpu, position)]);
    }
  }
  return ends;
}

// Do all GPUs end batches first..last at a distance of `period` batches that
// is the same for all?
bool IsPeriodic(const std::vector<std::vector<double>>& ends, int first,
                int last, int period) {
  const double distance = ends[0][last] - ends[0][last - period];
  for (const auto& gpu : ends) {
    for (int batch = first + period; batch <= last; ++batch) {
      const double difference = gpu[batch] - gpu[batch - period];
      if (!(std::fabs(difference - distance) <= kTolerance * distance)) {
        return false;
      }
    }
  }
  return true;
}

// Does the second half of the batches take as long as the quarter before it,
// and how much do its batches differ?
void SetSpread(const std::vector<double>& ends, int half, int last,
               Window* window) {
  const int quarter = half / 2;
  const double mean = (ends[last] - ends[half]) / (last - half);
  double variance = 0;
  for (int batch = half + 1; batch <= last; ++batch) {
    const double difference = ends[batch] - ends[batch - 1] - mean;
    variance += difference * difference / (last - half);
  }
  window->spread_seconds = std::sqrt(variance);
  if (half - quarter < kMinStationaryBatches) return;
  const double before = (ends[half] - ends[quarter]) / (half - quarter);
  window->stationary = std::fabs(before - mean) <= kStationaryTolerance * mean;
}

}  // namespace

int InitialBatches(int num_ranks, int num_microbatches) {
  return 2 * DrainBatches(num_ranks, num_microbatches) + 6;
}

Window FindWindow(const Schedule& schedule, const PipelineGraph& graph,
                  const Recording& recording, double makespan_seconds) {
  Window window;
  window.end_seconds = makespan_seconds;
  if (schedule.flush) return window;

  const auto ends = BatchEnds(schedule, graph, recording);
  // The last batches drain: their ranks have no forwards left to do.
  const int last = schedule.num_batches - 1 -
                   DrainBatches(schedule.num_ranks, schedule.num_microbatches);
  for (int period = 1; period <= kMaxPeriodBatches; ++period) {
    // Three periods in a row, or it may be chance.
    const int first = last - 3 * period;
    if (first < 0 || !IsPeriodic(ends, first, last, period)) continue;
    window.begin_seconds = ends[0][last - period];
    window.end_seconds = ends[0][last];
    window.num_batches = period;
    return window;
  }
  window.steady = false;
  const int half = std::max(last / 2, 0);
  if (last > half) {
    window.begin_seconds = ends[0][half];
    window.end_seconds = ends[0][last];
    window.num_batches = last - half;
    SetSpread(ends[0], half, last, &window);
  } else {
    window.num_batches = schedule.num_batches;
  }
  return window;
}

}  // namespace weir
