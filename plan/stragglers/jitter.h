// SPDX-License-Identifier: Apache-2.0
// Step times with jitter: a simulated run is replayed many times with passes of
// random length (Monte Carlo).
#ifndef WEIR_PLAN_STRAGGLERS_JITTER_H_
#define WEIR_PLAN_STRAGGLERS_JITTER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/stragglers/jitter_source.h"
#include "sim/report/replay_tasks.h"

namespace weir::plan {

struct JitterRequest {
  std::vector<JitterSource> sources;  // factors multiply
  uint32_t num_samples = 1000;
  uint32_t seed = 1;
};

// Values of distributions are tabulated at this many equally probable
// quantiles.
inline constexpr int kJitterQuantiles = 1 << 16;

// Replays the run once for each sample and returns the step times: seconds per
// batch, from begin_tasks to end_tasks. Samples of different schedules use
// common random numbers: the factor of a pass depends on the seed, the sample,
// the source, and on the pass (replica, tensor rank, operation, stage,
// microbatch), its GPU or its stage, as JitterSource::of says. Without sources,
// or if all factors are 1, the step time is the simulated one, to the last bit.
// Other tasks keep their seconds. Runs on all cores; results do not depend on
// their number.
std::vector<double> SampleStepSeconds(
    const sim::ReplayTasks& run, const JitterRequest& request,
    const std::function<void(double)>& progress = nullptr);

// Returns InvalidArgument if a source names a GPU or stage that does not exist.
absl::Status CheckSources(const sim::ReplayTasks& run,
                          const std::vector<JitterSource>& sources);

struct JitterStatistics {
  double mean = 0, standard_error = 0;  // of the mean
  double median = 0, percentile_95 = 0, percentile_99 = 0, largest = 0;
};
// Requires: at least one value.
JitterStatistics StatisticsOf(std::vector<double> values);

struct NamedJitter {
  std::string schedule;
  std::string label;            // of its row: "zb-v v=2"
  double batch_seconds = 0;     // without jitter
  double makespan_seconds = 0;  // the same, of all simulated batches
  // Batches that were simulated, and the part of them from which step times
  // are taken.
  int simulated_batches = 1, num_batches = 1;
  bool is_exact = true;
  std::vector<double> samples;
};

// Returns a row for each schedule. The last column compares samples with those
// of the first schedule, one by one.
std::string JitterTable(std::span<const NamedJitter> all);
// Returns a JSON object with statistics and samples.
std::string JitterJson(const JitterRequest& request,
                       std::span<const NamedJitter> all);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_JITTER_H_
