// SPDX-License-Identifier: Apache-2.0
// Energy of a simulated step from measured passes, instead of a power model.
#ifndef WEIR_PLAN_ENERGY_MEASURED_POWER_H_
#define WEIR_PLAN_ENERGY_MEASURED_POWER_H_

#include "absl/status/statusor.h"
#include "plan/energy/clock_profile.h"
#include "plan/energy/step_energy.h"
#include "results/result.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

struct MeasuredPower {
  ClockProfile profile;
  double blocking_watts = 0;  // of a GPU that waits
  double megahertz = 0;       // clock of all passes; 0: the highest of each
};

// Returns the energy of a step: each pass takes the measured power of its stage
// and instruction (joules over seconds) as long as it is simulated, and a GPU
// takes blocking_watts at all other times, also in optimizer steps, which are
// not measured. A backward of which only the parts were measured takes their
// mean power, and parts that of the whole. Returns InvalidArgument for a result
// without timeline, of several batches, or with other stages than those of the
// profile, and for a clock that was not measured.
absl::StatusOr<StepEnergy> EnergyOfPasses(const Result& result,
                                          const MeasuredPower& power,
                                          const EnergyPrices& prices);

// Returns the times of passes at a clock (0: the highest of each), for
// simulations with given costs. Returns InvalidArgument if a pass was not
// measured at it.
absl::StatusOr<GivenCosts> CostsAtClock(const ClockProfile& profile,
                                        double megahertz);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_MEASURED_POWER_H_
