// SPDX-License-Identifier: Apache-2.0
#include "results/metrics.h"

namespace weir::results {
namespace {

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// Returns the mean over GPUs of a fraction of the window.
double MeanPart(std::span<const double> gpu_seconds, double window_seconds) {
  double seconds = 0;
  for (double one : gpu_seconds) seconds += one;
  return Ratio(seconds,
               static_cast<double>(gpu_seconds.size()) * window_seconds);
}

}  // namespace

double IdleRatio(std::span<const double> idle_seconds, double window_seconds) {
  return MeanPart(idle_seconds, window_seconds);
}

double ExposedCommunicationRatio(std::span<const double> exposed_seconds,
                                 double window_seconds) {
  return MeanPart(exposed_seconds, window_seconds);
}

double ModelFlopsUtilization(double model_flops, double seconds, int num_gpus,
                             double peak_flops) {
  return Ratio(model_flops, seconds * num_gpus * peak_flops);
}

double SamplesPerSecond(double global_batch_size, double batch_seconds) {
  return Ratio(global_batch_size, batch_seconds);
}

double TokensPerSecond(double global_batch_size, double sequence_length,
                       double batch_seconds) {
  return Ratio(global_batch_size * sequence_length, batch_seconds);
}

}  // namespace weir::results
