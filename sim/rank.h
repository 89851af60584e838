// SPDX-License-Identifier: Apache-2.0
// The second of three speeds: what a scenario takes, as exact as the full
// simulation, without simulating every GPU and every microbatch. For planners,
// which ask thousands of times.
#ifndef WEIR_SIM_RANK_H_
#define WEIR_SIM_RANK_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scenarios/scenario.h"

namespace weir {

class GraphRunner;

// Equal to the same figures of Simulate's Result, to 1e-9 relative, unless
// rounding grows along the run, or decides what is in memory at one moment
// (docs/decisions/0018-folding-by-colours.md).
struct RankedRun {
  double batch_seconds = 0;
  double makespan_seconds = 0;
  std::vector<double> peak_bytes;  // [pipeline rank], of its worst GPU
  bool fits_memory = true;

  // How it was found. Each is declined where it would not be exact.
  bool folded = false;        // one GPU stood for those that do the same
  bool extrapolated = false;  // periods of the steady state were left out
  // Flows shared links: SimGrid was asked. Else the longest path is the answer,
  // since in it no two flows meet on a link.
  bool shared_links = false;
  // GPUs and microbatches (of all batches that were run) that were simulated.
  int num_simulated_gpus = 0;
  int num_simulated_microbatches = 0;
  // Why not; empty where it was.
  absl::string_view not_folded, not_extrapolated;
};

// One per process: keeps SimGrid's platform from one scenario to the next, and
// networks, schedules, prices and folds, within bounds. Simulate may not be
// called beside it (sim/graph_runner.h).
class Ranker {
 public:
  // Runs graphs on `runner`, which must outlive it; null: on one of its own.
  explicit Ranker(GraphRunner* runner = nullptr);
  ~Ranker();
  Ranker(const Ranker&) = delete;
  Ranker& operator=(const Ranker&) = delete;

  // Errors as Simulate's; a deadlock is told of the GPUs that stand for all,
  // and what is folded or extrapolated may have more tasks than Simulate takes.
  absl::StatusOr<RankedRun> Rank(const ResolvedScenario& scenario);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir

#endif  // WEIR_SIM_RANK_H_
