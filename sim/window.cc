// SPDX-License-Identifier: Apache-2.0
#include "sim/window.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace weir {
namespace {

// Relative difference up to which two periods count as equal: above what
// rounding adds over a long run, far below anything that matters.
constexpr double kTolerance = 1e-9;

// Shared links can make the time per batch wander for ever. Its mean is then
// what there is to know, once it has stopped to drift.
constexpr double kStationaryTolerance = 5e-3;
constexpr int kMinStationaryBatches = 48;

int DivideUp(int a, int b) { return (a + b - 1) / b; }

// Batches at the end of a run in which the pipeline empties.
int DrainBatches(int num_ranks, int num_microbatches) {
  return DivideUp(num_ranks, num_microbatches);
}

// Batches whose actions, taken together, decide all that comes after them: an
// action waits for nothing older than the microbatches in flight.
int StateBatches(int num_ranks, int num_microbatches) {
  return DivideUp(2 * num_ranks, num_microbatches) + 1;
}

class Run {
 public:
  Run(const Schedule& schedule, const PipelineGraph& graph,
      const Recording& recording)
      : schedule_(schedule),
        graph_(graph),
        end_(recording.end_seconds()),
        last_(schedule.num_batches - 1 -
              DrainBatches(schedule.num_ranks, schedule.num_microbatches)) {
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      last_backward_.push_back(LastBackwards(rank));
    }
  }

  // The last batch before the drain.
  int last() const { return last_; }

  // When GPU 0 ended the last backward of a batch.
  double BatchEnd(int batch) const {
    return end_[graph_.ActionEnd(0, last_backward_[0][batch])];
  }

  // Do all actions of the batches that decide the future end as long after
  // their likes `period` batches before as the batches themselves? Then so will
  // all that follow.
  bool IsPeriodic(int period) const {
    const int num_state =
        StateBatches(schedule_.num_ranks, schedule_.num_microbatches);
    if (last_ - period - num_state < 0) return false;
    const double distance = BatchEnd(last_) - BatchEnd(last_ - period);
    for (int gpu = 0; gpu < graph_.num_gpus(); ++gpu) {
      if (!IsPeriodic(gpu, period, num_state, distance)) return false;
    }
    return true;
  }

 private:
  // [batch]
  std::vector<int32_t> LastBackwards(int rank) const {
    std::vector<int32_t> last(schedule_.num_batches, 0);
    const auto& actions = schedule_.rank_actions[rank];
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].op == Op::kForward) continue;
      last[actions[i].microbatch / schedule_.num_microbatches] =
          static_cast<int32_t>(i);
    }
    return last;
  }

  bool IsPeriodic(int gpu, int period, int num_state, double distance) const {
    const int rank = graph_.rank_of(gpu);
    const auto& actions = schedule_.rank_actions[rank];
    const auto per_batch =
        static_cast<int32_t>(actions.size()) / schedule_.num_batches;
    const int32_t shift = period * per_batch;
    const int32_t newest = last_backward_[rank][last_];
    const int32_t oldest = newest - num_state * per_batch;
    if (oldest - shift < 0) return false;
    for (int32_t i = newest; i > oldest; --i) {
      const Action& action = actions[i];
      const Action before = {
          action.op, action.stage,
          action.microbatch - period * schedule_.num_microbatches};
      if (actions[i - shift] != before) return false;
      const double difference = end_[graph_.ActionEnd(gpu, i)] -
                                end_[graph_.ActionEnd(gpu, i - shift)];
      if (!(std::fabs(difference - distance) <= kTolerance * distance)) {
        return false;
      }
    }
    return true;
  }

  const Schedule& schedule_;
  const PipelineGraph& graph_;
  const std::span<const double> end_;
  const int last_;
  std::vector<std::vector<int32_t>> last_backward_;  // [rank][batch]
};

// Does the second half of the batches take as long as the quarter before it,
// and how much do its batches differ?
void SetSpread(const Run& run, int half, Window* window) {
  const int quarter = half / 2;
  const int count = run.last() - half;
  const double mean = (run.BatchEnd(run.last()) - run.BatchEnd(half)) / count;
  double variance = 0;
  for (int batch = half + 1; batch <= run.last(); ++batch) {
    const double difference =
        run.BatchEnd(batch) - run.BatchEnd(batch - 1) - mean;
    variance += difference * difference / count;
  }
  window->spread_seconds = std::sqrt(variance);
  if (half - quarter < kMinStationaryBatches) return;
  const double before =
      (run.BatchEnd(half) - run.BatchEnd(quarter)) / (half - quarter);
  window->stationary = std::fabs(before - mean) <= kStationaryTolerance * mean;
}

}  // namespace

int InitialBatches(int num_ranks, int num_microbatches) {
  // Warm-up and drain, a state and the one it is compared with.
  return 2 * DrainBatches(num_ranks, num_microbatches) +
         StateBatches(num_ranks, num_microbatches) + 4;
}

Window FindWindow(const Schedule& schedule, const PipelineGraph& graph,
                  const Recording& recording, double makespan_seconds) {
  Window window;
  window.end_seconds = makespan_seconds;
  if (schedule.flush) return window;

  const Run run(schedule, graph, recording);
  for (int period = 1; period < run.last(); ++period) {
    if (!run.IsPeriodic(period)) continue;
    window.begin_seconds = run.BatchEnd(run.last() - period);
    window.end_seconds = run.BatchEnd(run.last());
    window.num_batches = period;
    return window;
  }
  window.steady = false;
  const int half = std::max(run.last() / 2, 0);
  if (run.last() > half) {
    window.begin_seconds = run.BatchEnd(half);
    window.end_seconds = run.BatchEnd(run.last());
    window.num_batches = run.last() - half;
    SetSpread(run, half, &window);
  } else {
    window.num_batches = schedule.num_batches;
  }
  return window;
}

}  // namespace weir
