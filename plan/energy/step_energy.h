// SPDX-License-Identifier: Apache-2.0
// Energy of a simulated step: idle plus dynamic power by what each GPU does.
#ifndef WEIR_PLAN_ENERGY_STEP_ENERGY_H_
#define WEIR_PLAN_ENERGY_STEP_ENERGY_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/energy/power.pb.h"
#include "results/result.pb.h"

namespace weir::plan {

// What energy costs; 0: unknown.
struct EnergyPrices {
  double tokens = 0;         // of a run
  double price_per_kwh = 0;  // in any currency
  double grams_co2_per_kwh = 0;
  double pue = 1;  // power usage effectiveness: energy of the building per
                   // energy of its nodes
};

struct StepEnergy {
  // Joules of all nodes in one step.
  double compute_joules = 0, communication_joules = 0, waiting_joules = 0;
  double node_joules = 0;    // other components
  double watts_per_gpu = 0;  // mean of joules() over the step
  std::optional<double> joules_per_token;
  // With EnergyPrices::tokens, in the building: kWh, price, kg of CO2.
  std::optional<double> run_kwh, run_price, run_kg_co2;

  double joules() const {
    return compute_joules + communication_joules + waiting_joules + node_joules;
  }
};

// Multiplies the mean seconds of a GPU in each part of the step
// (Result.breakdown) with the power in this part and the number of GPUs:
//
//   compute: passes without collectives, optimizer steps
//   communication: tensor, expert and context collectives inside passes
//   waiting: everything else, until batch_seconds
//
// Transfers and reductions that overlap with passes take no additional power.
// Returns InvalidArgument for a result without breakdown.
absl::StatusOr<StepEnergy> EnergyOfStep(const Result& result,
                                        const PowerModel& model,
                                        const EnergyPrices& prices);

// Sets what follows from the joules and the tokens of a step.
void FillRunEnergy(const Result& result, const EnergyPrices& prices,
                   StepEnergy* energy);

// Returns for example "5.09 MJ".
std::string FormatJoules(double joules);

// Returns a table with one column per result. `names`: of the results.
std::string StepEnergyTable(const PowerModel& model,
                            const std::vector<std::string>& names,
                            std::span<const StepEnergy> energies);

// Adds "energy" to the result, or to each of the results, of an output of
// results::ResultJson or results::CompareJson.
std::string WithEnergyJson(absl::string_view json, const PowerModel& model,
                           std::span<const StepEnergy> energies);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_STEP_ENERGY_H_
