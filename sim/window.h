// SPDX-License-Identifier: Apache-2.0
// The part of a run that a batch's figures are taken from.
#ifndef WEIR_SIM_WINDOW_H_
#define WEIR_SIM_WINDOW_H_

#include "sim/engine.h"
#include "sim/pipeline_graph.h"

namespace weir {

// With flush: the whole run, one batch. Without: one period of the steady
// state. A period is seen when every action of every GPU, over so many batches
// that nothing before them matters, comes one distance after its like some
// batches earlier: from there on the run must repeat itself. Where microbatches
// take several routes, as many batches as bring them round.
struct Window {
  double begin_seconds = 0;
  double end_seconds = 0;
  int num_batches = 1;
  // Without flush: was a period seen? If not, the window is the second half of
  // the batches,
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
