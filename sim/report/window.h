// SPDX-License-Identifier: Apache-2.0
// The part of a run from which a batch's values are taken.
#ifndef WEIR_SIM_REPORT_WINDOW_H_
#define WEIR_SIM_REPORT_WINDOW_H_

#include <cstdint>
#include <vector>

#include "schedules/schedule.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// With flush: the whole run, one batch. Without, and of batches with a flush
// that overlap: one period of the steady state. To find a period, the last
// batches before the drain, as many as determine everything after them, are
// compared with the batches one period earlier. If every action of every GPU
// ends one period later, to 1e-9 of the period, the run repeats from there on.
// If microbatches take several routes, a period is a multiple of the batches
// after which the routes recur.
//
// Only these batches are compared, not the whole period. If flows share links,
// rounding errors can grow along a run and shrink again: times in the middle of
// a long period then differ from one period to the next by 1e-9 to 1e-6 of it,
// although its ends agree. Such a window is steady, but its times are not
// reproducible to nine digits: changing the last digit of an input can change
// them by as much.
struct Window {
  double begin_seconds = 0;
  double end_seconds = 0;
  int num_batches = 1;
  // Without flush: whether a period was found. The run repeats at its end; see
  // above for its middle. If false, the window is the second half of the
  // batches.
  bool steady = true;
  // If not steady: whether the mean time of these batches is within 0.5 % of
  // that of the batches before them.
  bool stationary = false;
  // If not steady: the standard deviation of the time of these batches.
  double spread_seconds = 0;

  // For overlapping batches with a flush: the time of the first batch until the
  // last rank has updated, as if the others had to wait for it.
  double first_batch_seconds = 0;
  // Expected time per batch for steps that are rolled back, see
  // RollbackSeconds.
  double rollback_seconds = 0;

  double batch_seconds() const {
    return (end_seconds - begin_seconds) / num_batches + rollback_seconds;
  }
};

// Returns the window of the run of a graph. `makespan_seconds`: the end of the
// whole run.
Window FindWindow(const schedules::Schedule& schedule,
                  const PipelineGraph& graph, const Recording& recording,
                  double makespan_seconds);

// A run whose order and times are computed where they are read.
class RunInBatches {
 public:
  virtual ~RunInBatches() = default;
  // Shape, routes and policy; its actions are not read.
  virtual const schedules::Schedule& shape() const = 0;
  virtual int num_gpus() const = 0;
  virtual int rank_of(int gpu) const = 0;
  // Returns the GPU of the rank in the first replica.
  virtual int first_gpu(int rank) const = 0;
  virtual int32_t num_actions(int rank) const = 0;
  virtual schedules::Action ActionAt(int rank, int32_t position) const = 0;
  virtual double EndSeconds(int gpu, int32_t position) const = 0;
  // Returns, for each batch, the position of its last backward (forward, if
  // there are none) on the rank. If a batch does not come to this rank:
  // position of the batch before; -1: none.
  virtual std::vector<int32_t> LastActions(int rank) const = 0;
};

// Returns the window of a run without a flush that no graph holds.
Window FindWindow(const RunInBatches& run, double makespan_seconds);

// Returns the expected time per batch that rollbacks take if this fraction of
// the optimizer steps is rolled back. A rank that learns of it undoes its step,
// updates once more, and begins the next batch again, together with all others:
// what it computed before is lost. Such a batch thus takes as long as one after
// which all ranks wait for each other, and the steps of the slowest GPU twice
// more. 0 unless batches with a flush overlap.
double RollbackSeconds(const schedules::Schedule& schedule,
                       const PipelineGraph& graph, const Window& window,
                       double rollback_fraction);

// Number of batches with which a run of overlapping batches with a flush starts
// looking for its steady state: a rank begins a batch after it has ended the
// one before, so a single batch determines everything after it. One fills the
// pipeline, two are compared, and one drains it.
inline constexpr int kFirstOverlappingBatches = 4;

// Returns the number of batches with which a run without flush starts looking
// for its steady state: warm-up and drain of the pipeline, and some periods
// between them.
int InitialBatches(int num_ranks, int num_microbatches);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_WINDOW_H_
