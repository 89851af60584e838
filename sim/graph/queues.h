// SPDX-License-Identifier: Apache-2.0
// Queue lengths between the stages of an inference pipeline.
#ifndef WEIR_SIM_GRAPH_QUEUES_H_
#define WEIR_SIM_GRAPH_QUEUES_H_

namespace weir::sim {

// Number of inputs, and of outputs, that may wait in a stage in addition to the
// microbatches in progress. usc-isi/PipeEdge has two buffers in each direction.
inline constexpr int kQueuedMicrobatches = 2;

}  // namespace weir::sim

#endif  // WEIR_SIM_GRAPH_QUEUES_H_
