// SPDX-License-Identifier: Apache-2.0
#include "sim/report/window.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "sim/graph/queues.h"
#include "sim/report/batch_ends.h"

namespace weir::sim {
namespace {

// Relative difference up to which two periods are equal at their ends: above
// the rounding error of a long run, unless it grows along the run (window.h),
// and far below any difference that matters.
constexpr double kTolerance = 1e-9;

// With shared links the time per batch can vary forever. Its mean is used once
// it no longer drifts.
constexpr double kStationaryTolerance = 5e-3;
constexpr int kMinStationaryBatches = 48;

template <typename Int>
Int DivideUp(Int a, Int b) {
  return (a + b - 1) / b;
}

// Returns the batches at the end of a run during which the pipeline empties.
int DrainBatches(int depth, int num_microbatches) {
  return DivideUp(depth, num_microbatches);
}

// Returns the number of batches whose actions together determine everything
// after them: an action waits for nothing older than the microbatches in
// flight.
int StateBatches(int depth, int num_microbatches) {
  return DivideUp(2 * depth, num_microbatches) + 1;
}

// Returns the microbatches in flight: those that the ranks of the first stage
// have begun and not ended in their orders, at least one per rank. In
// inference: the contents of full queues at both ends of every hop.
int Depth(const RunInBatches& run) {
  const schedules::Schedule& schedule = run.shape();
  int depth = 0;
  for (int rank : schedule.RanksOf(0)) {
    int now = 0, most = 0;
    const int32_t num_actions = run.num_actions(rank);
    for (int32_t i = 0; i < num_actions; ++i) {
      const schedules::Action action = run.ActionAt(rank, i);
      if (action.stage != 0) continue;
      if (action.op == schedules::Op::kForward) {
        now += action.num_microbatches;
        most = std::max(most, now);
      } else if (schedules::MakesInputGradient(action.op)) {
        now -= action.num_microbatches;
      }
    }
    if (!schedule.forward_only) depth += most;
  }
  if (schedule.forward_only) {
    depth = 2 * (kQueuedMicrobatches + 1) * (schedule.num_stages - 1);
  }
  return std::max(depth, schedule.num_ranks);
}

// Returns the number of batches after which routes recur in the same order.
int RouteCycle(const schedules::Schedule& schedule) {
  const int64_t round =
      int64_t{schedule.num_routes()} * schedule.microbatches_per_route_turn;
  return static_cast<int>(round /
                          std::gcd(round, int64_t{schedule.num_microbatches}));
}

// Returns the time from the start of the run until all ranks have updated after
// the first batch.
double FirstBatchSeconds(const schedules::Schedule& schedule,
                         const PipelineGraph& graph,
                         const Recording& recording) {
  double end = 0;
  const auto ends = recording.end_seconds();
  for (int gpu = 0; gpu < graph.num_gpus(); ++gpu) {
    const int rank = graph.rank_of(gpu);
    const auto& actions = schedule.rank_actions[rank];
    for (int32_t i = 0; i < std::ssize(actions) &&
                        actions[i].microbatch < schedule.num_microbatches;
         ++i) {
      end = std::max(end, ends[graph.ActionEnd(gpu, i)]);
    }
    const auto& steps = graph.steps.plan[rank];
    for (int i = 0; i < std::ssize(steps) && steps[i].update == 0; ++i) {
      const int32_t step = graph.StepTask(gpu, i);
      if (step == PipelineGraph::kNone) continue;
      end = std::max(end, ends[step]);
      const CollectiveSpan gather = graph.StepGather(gpu, i);
      if (gather.end >= 0) end = std::max(end, ends[gather.end]);
    }
  }
  return end;
}

// The run of a graph.
class GraphRun : public RunInBatches {
 public:
  GraphRun(const schedules::Schedule& schedule, const PipelineGraph& graph,
           const Recording& recording)
      : schedule_(schedule), graph_(graph), end_(recording.end_seconds()) {}

  const schedules::Schedule& shape() const override { return schedule_; }
  int num_gpus() const override { return graph_.num_gpus(); }
  int rank_of(int gpu) const override { return graph_.rank_of(gpu); }
  int first_gpu(int rank) const override { return rank * graph_.tensor; }
  int32_t num_actions(int rank) const override {
    return static_cast<int32_t>(schedule_.rank_actions[rank].size());
  }
  schedules::Action ActionAt(int rank, int32_t position) const override {
    return schedule_.rank_actions[rank][position];
  }
  double EndSeconds(int gpu, int32_t position) const override {
    return end_[graph_.ActionEnd(gpu, position)];
  }
  std::vector<int32_t> LastActions(int rank) const override {
    return LastActionsOf(schedule_, rank);
  }

 private:
  const schedules::Schedule& schedule_;
  const PipelineGraph& graph_;
  const std::span<const double> end_;
};

class Run {
 public:
  explicit Run(const RunInBatches& run)
      : run_(run),
        schedule_(run.shape()),
        // A rank has ended a batch before it begins the next one.
        depth_(schedule_.flush ? 0 : Depth(run)),
        last_(schedule_.num_batches - 1 -
              std::max(DrainBatches(depth_, schedule_.num_microbatches), 1)),
        end_seconds_(schedule_.num_batches) {
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
      last_action_.push_back(run.LastActions(rank));
    }
    // With its last gradients, or its last outputs, the first replica has ended
    // a batch.
    const int stage = schedule_.forward_only ? schedule_.num_stages - 1 : 0;
    for (const int rank : schedule_.RanksOf(stage)) {
      for (int batch = 0; batch < schedule_.num_batches; ++batch) {
        const int32_t last = last_action_[rank][batch];
        if (last < 0) continue;
        end_seconds_[batch] = std::max(
            end_seconds_[batch], run.EndSeconds(run.first_gpu(rank), last));
      }
    }
  }

  // The last batch before the drain.
  int last() const { return last_; }

  // Returns when the first replica ended a batch.
  double BatchEnd(int batch) const { return end_seconds_[batch]; }

  // Returns true if all actions of the batches that determine the future end as
  // long after their counterparts `period` batches earlier as the batches
  // themselves do. Then so do all later ones.
  bool IsPeriodic(int period) const {
    const int num_state = StateBatches(depth_, schedule_.num_microbatches);
    if (last_ - period - num_state < 0) return false;
    const double distance = BatchEnd(last_) - BatchEnd(last_ - period);
    for (int gpu = 0; gpu < run_.num_gpus(); ++gpu) {
      if (!IsPeriodic(gpu, period, num_state, distance)) return false;
    }
    return true;
  }

 private:
  bool IsPeriodic(int gpu, int period, int num_state, double distance) const {
    const int rank = run_.rank_of(gpu);
    const int32_t newest = last_action_[rank][last_];
    const int32_t shift = newest - last_action_[rank][last_ - period];
    const auto state = static_cast<int32_t>(
        DivideUp(int64_t{run_.num_actions(rank)} * num_state,
                 int64_t{schedule_.num_batches}));
    const int32_t oldest = newest - state;
    if (oldest - shift < 0) return false;
    for (int32_t i = newest; i > oldest; --i) {
      schedules::Action before = run_.ActionAt(rank, i);
      before.microbatch -= period * schedule_.num_microbatches;
      if (run_.ActionAt(rank, i - shift) != before) return false;
      const double difference =
          run_.EndSeconds(gpu, i) - run_.EndSeconds(gpu, i - shift);
      if (!(std::fabs(difference - distance) <= kTolerance * distance)) {
        return false;
      }
    }
    return true;
  }

  const RunInBatches& run_;
  const schedules::Schedule& schedule_;
  const int depth_;
  const int last_;
  std::vector<std::vector<int32_t>> last_action_;  // [rank][batch]
  std::vector<double> end_seconds_;                // [batch]
};

// Compares the time of the second half of the batches with that of the quarter
// before it, and computes the spread of its batches.
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

// Sets all values but those of a run with a flush.
void FillWindow(const RunInBatches& batches, Window* window) {
  const schedules::Schedule& schedule = batches.shape();
  const Run run(batches);
  const int cycle = RouteCycle(schedule);
  for (int period = cycle; period < run.last(); period += cycle) {
    if (!run.IsPeriodic(period)) continue;
    window->begin_seconds = run.BatchEnd(run.last() - period);
    window->end_seconds = run.BatchEnd(run.last());
    window->num_batches = period;
    return;
  }
  window->steady = false;
  const int half = std::max(run.last() / 2, 0);
  if (run.last() > half) {
    window->begin_seconds = run.BatchEnd(half);
    window->end_seconds = run.BatchEnd(run.last());
    window->num_batches = run.last() - half;
    SetSpread(run, half, window);
  } else {
    window->num_batches = schedule.num_batches;
  }
}

}  // namespace

double RollbackSeconds(const schedules::Schedule& schedule,
                       const PipelineGraph& graph, const Window& window,
                       double rollback_fraction) {
  if (!schedule.overlaps_batches() || rollback_fraction == 0) return 0;
  double longest = 0;
  for (int gpu = 0; gpu < graph.num_gpus(); ++gpu) {
    double seconds = 0;
    const auto& steps = graph.steps.plan[graph.rank_of(gpu)];
    for (int i = 0; i < std::ssize(steps) && steps[i].update == 0; ++i) {
      const int32_t step = graph.StepTask(gpu, i);
      if (step != PipelineGraph::kNone) seconds += graph.tasks.amount(step);
    }
    longest = std::max(longest, seconds);
  }
  const double lost = window.first_batch_seconds - window.batch_seconds();
  return rollback_fraction * (2 * longest + std::max(lost, 0.0));
}

int InitialBatches(int num_ranks, int num_microbatches) {
  // Warm-up and drain, a state and the one with which it is compared.
  return 2 * DrainBatches(num_ranks, num_microbatches) +
         StateBatches(num_ranks, num_microbatches) + 4;
}

Window FindWindow(const schedules::Schedule& schedule,
                  const PipelineGraph& graph, const Recording& recording,
                  double makespan_seconds) {
  Window window;
  window.end_seconds = makespan_seconds;
  if (schedule.flush && schedule.num_batches == 1) return window;
  if (schedule.flush) {
    window.first_batch_seconds = FirstBatchSeconds(schedule, graph, recording);
  }
  FillWindow(GraphRun(schedule, graph, recording), &window);
  return window;
}

Window FindWindow(const RunInBatches& run, double makespan_seconds) {
  Window window;
  window.end_seconds = makespan_seconds;
  FillWindow(run, &window);
  return window;
}

}  // namespace weir::sim
