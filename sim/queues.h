// SPDX-License-Identifier: Apache-2.0
// How far stages of an inference pipeline run ahead of each other.
#ifndef WEIR_SIM_QUEUES_H_
#define WEIR_SIM_QUEUES_H_

namespace weir {

// Inputs that may wait in a stage, and outputs, beside those at work: the
// buffers of usc-isi/PipeEdge, two each way.
inline constexpr int kQueuedMicrobatches = 2;

}  // namespace weir

#endif  // WEIR_SIM_QUEUES_H_
