// SPDX-License-Identifier: Apache-2.0
#include "results/metrics.h"

#include <limits>

namespace weir {
namespace {

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

double BubbleRatio(std::span<const double> busy_seconds,
                   double window_seconds) {
  double idle_seconds = 0;
  for (double busy : busy_seconds) idle_seconds += window_seconds - busy;
  return Ratio(idle_seconds,
               static_cast<double>(busy_seconds.size()) * window_seconds);
}

double BubbleOverhead(double bubble_ratio) {
  return bubble_ratio < 1 ? bubble_ratio / (1 - bubble_ratio)
                          : std::numeric_limits<double>::infinity();
}

double ExposedCommunicationRatio(std::span<const double> exposed_seconds,
                                 double window_seconds) {
  double exposed = 0;
  for (double seconds : exposed_seconds) exposed += seconds;
  return Ratio(exposed,
               static_cast<double>(exposed_seconds.size()) * window_seconds);
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

}  // namespace weir
