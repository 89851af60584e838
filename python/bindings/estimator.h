// SPDX-License-Identifier: Apache-2.0
// Fast estimates of scenarios that differ in a few fields.
#ifndef WEIR_PYTHON_BINDINGS_ESTIMATOR_H_
#define WEIR_PYTHON_BINDINGS_ESTIMATOR_H_

#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "plan/sweep/sweep.pb.h"
#include "scenarios/scenario.h"
#include "scenarios/scenario.pb.h"
#include "sim/fast/fast_simulator.h"

namespace weir::python {

struct Estimate {
  sim::FastEstimate run;
  SweepOutcome values;  // as of a point of a sweep
};

// Keeps the files of scenarios from one estimate to the next, and what
// FastSimulator keeps. At most one per process.
class Estimator {
 public:
  // Returns the errors of ResolveScenario and of Simulate, which name `label`.
  // May be called from several threads, which wait for each other.
  absl::StatusOr<Estimate> Run(const std::string& label,
                               const Scenario& scenario);

  // CPU seconds that all calls of Run have taken.
  double seconds() const { return seconds_; }

 private:
  absl::StatusOr<Estimate> RunLocked(const std::string& label,
                                     const Scenario& scenario);
  absl::StatusOr<Estimate> Simulate(
      const scenarios::ResolvedScenario& scenario);

  std::mutex mutex_;
  double seconds_ = 0;
  std::optional<sim::FastSimulator> simulator_;
  // The last scenarios with different files, the newest first, by LoadKey.
  std::list<std::pair<std::string, scenarios::ResolvedScenario>> resolved_;
};

}  // namespace weir::python

#endif  // WEIR_PYTHON_BINDINGS_ESTIMATOR_H_
