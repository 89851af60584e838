// SPDX-License-Identifier: Apache-2.0
// The second of three methods: as exact as the full simulation, without
// simulating every GPU and every microbatch. For planners, which rank thousands
// of scenarios.
#ifndef WEIR_SIM_FAST_FAST_SIMULATOR_H_
#define WEIR_SIM_FAST_FAST_SIMULATOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scenarios/scenario.h"

namespace weir::sim {

class GraphRunner;

// Equal to the same values of Simulate's Result, to 1e-9 relative, unless
// rounding errors grow along the run or decide what is in memory at one time
// (docs/decisions/0018-symmetry-reduction.md).
struct FastEstimate {
  double batch_seconds = 0;
  double makespan_seconds = 0;
  std::vector<double> peak_bytes;  // [pipeline rank], of its fullest GPU
  bool fits_memory = true;

  // Mean seconds of all GPUs in computation (passes without their collectives,
  // optimizer steps) and in collectives of passes, with `with_parts`. As in the
  // breakdown of Simulate's Result; if extrapolated, passes that were left out
  // count as the mean of the others.
  double compute_seconds = 0, communication_seconds = 0;

  // The methods used. Each is skipped if it would not be exact.
  bool reduced = false;       // each GPU represented those that do the same
  bool extrapolated = false;  // periods of the steady state were left out
  // Flows shared links, so SimGrid was used. Otherwise the longest path is
  // exact, since no two flows share a link at the same time in it.
  bool shared_links = false;
  // Simulated GPUs and microbatches (of all simulated batches).
  int num_simulated_gpus = 0;
  int num_simulated_microbatches = 0;
  int num_microbatches = 0;  // of all batches that Simulate simulates
  // Reasons why a method was not used; empty if it was.
  absl::string_view not_reduced, not_extrapolated;
};

// Keeps SimGrid's platform from one scenario to the next, and networks,
// schedules, prices and symmetry reductions, within size limits. At most one
// instance per process, in which Simulate must not fork
// (sim/engine/graph_runner.h).
class FastSimulator {
 public:
  // Runs graphs on `runner`, which must outlive this object; null: on its own
  // runner.
  explicit FastSimulator(GraphRunner* runner = nullptr);
  ~FastSimulator();
  FastSimulator(const FastSimulator&) = delete;
  FastSimulator& operator=(const FastSimulator&) = delete;

  // Returns Simulate's errors. A deadlock is reported for representative GPUs,
  // and a reduced or extrapolated scenario may have more tasks than Simulate
  // accepts.
  absl::StatusOr<FastEstimate> Estimate(
      const scenarios::ResolvedScenario& scenario, bool with_parts = false);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_FAST_FAST_SIMULATOR_H_
