// SPDX-License-Identifier: Apache-2.0
// The metrics of a result, each defined only here. All functions take plain
// numbers; a window is the time of one batch (see Result.idle_ratio). Ratios
// are 0 for an empty window or without GPUs.
#ifndef WEIR_RESULTS_METRICS_H_
#define WEIR_RESULTS_METRICS_H_

#include <span>

namespace weir::results {

// Returns the idle fraction of all GPUs over the window:
//   sum over GPUs of idle / (number of GPUs x window), in [0, 1].
// Without transfers and collectives this is the bubble ratio of the papers;
// some of them divide by the ideal time instead.
double IdleRatio(std::span<const double> idle_seconds, double window_seconds);

// Returns the mean over GPUs of the time in which they compute nothing because
// a transfer or a collective that they wait for is in flight, as a fraction of
// the window:
//   sum over GPUs of exposed / (number of GPUs x window).
double ExposedCommunicationRatio(std::span<const double> exposed_seconds,
                                 double window_seconds);

// Returns the model FLOPs utilization (Chowdhery et al., PaLM, 2022): the FLOP
// that the model needs, without recomputation, over the FLOP that the GPUs
// could have done:
//   model_flops / (seconds x num_gpus x peak_flops).
double ModelFlopsUtilization(double model_flops, double seconds, int num_gpus,
                             double peak_flops);

// Returns global_batch_size / batch_seconds.
double SamplesPerSecond(double global_batch_size, double batch_seconds);

// Returns global_batch_size x sequence_length / batch_seconds.
double TokensPerSecond(double global_batch_size, double sequence_length,
                       double batch_seconds);

}  // namespace weir::results

#endif  // WEIR_RESULTS_METRICS_H_
