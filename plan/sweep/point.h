// SPDX-License-Identifier: Apache-2.0
// One point of a sweep.
#ifndef WEIR_PLAN_SWEEP_POINT_H_
#define WEIR_PLAN_SWEEP_POINT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/sweep/sweep.pb.h"
#include "scenarios/scenario.h"
#include "sim/fast/fast_simulator.h"

namespace weir::plan {

// Runs points in one process and keeps the state that they share.
class PointRunner {
 public:
  explicit PointRunner(SweepMethod method) : method_(method) {}

  SweepOutcome Run(uint32_t point,
                   const absl::StatusOr<scenarios::ResolvedScenario>& scenario);

 private:
  SweepMethod method_;
  std::optional<sim::FastSimulator> fast_simulator_;
};

// Returns the method of a ranked run: "reduced, extrapolated", "full".
std::string MethodOf(const sim::FastEstimate& run);

// Copies the values of a ranked run.
void FillFigures(const sim::FastEstimate& run,
                 const scenarios::ResolvedScenario& scenario,
                 SweepOutcome* outcome);

// Returns the outcome of an error: refused if the scenario caused it, else
// failed.
SweepOutcome OutcomeOfError(uint32_t point, const absl::Status& error);

}  // namespace weir::plan

#endif  // WEIR_PLAN_SWEEP_POINT_H_
