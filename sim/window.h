// SPDX-License-Identifier: Apache-2.0
// The part of a run that a batch's figures are taken from.
#ifndef WEIR_SIM_WINDOW_H_
#define WEIR_SIM_WINDOW_H_

#include "sim/engine.h"
#include "sim/pipeline_graph.h"

namespace weir {

// With flush: the whole run, one batch. Without: one period of the steady
// state. To find a period, the last batches before the drain, as many as decide
// all that follows, are compared with the batches one period earlier. If every
// action of every GPU ends one period later, to 1e-9 of the period, the run
// repeats from there on. Where microbatches take several routes, a period is a
// multiple of the batches after which the routes recur.
//
// Only these batches are compared, not the whole period. Where flows share
// links, rounding errors can grow along a run and shrink again: times in the
// middle of a long period then differ from one period to the next by 1e-9 to
// 1e-6 of it, although its ends agree. Such a window is steady, but its times
// are not reproducible to nine digits: a change of the last digit of an input
// can move them by as much.
struct Window {
  double begin_seconds = 0;
  double end_seconds = 0;
  int num_batches = 1;
  // Without flush: was a period found? It repeats where it ends; see above for
  // its middle. If not, the window is the second half of the batches,
  bool steady = true;
  // whose mean is that of the batches before them to half a percent or not,
  bool stationary = false;
  // and whose times have this standard deviation.
  double spread_seconds = 0;

  double batch_seconds() const {
    return (end_seconds - begin_seconds) / num_batches;
  }
};

Window FindWindow(const Schedule& schedule, const PipelineGraph& graph,
                  const Recording& recording, double makespan_seconds);

// Batches with which a run without flush starts looking for its steady state:
// warm-up and drain of the pipeline, and some periods between them.
int InitialBatches(int num_ranks, int num_microbatches);

}  // namespace weir

#endif  // WEIR_SIM_WINDOW_H_
