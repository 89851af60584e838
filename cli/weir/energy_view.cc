// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/energy_view.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "plan/energy/power_model.h"
#include "plan/energy/step_energy.h"

namespace weir::cli {

absl::Status CheckEnergy(const Flags& flags) {
  const StepEnergyFlags& energy = flags.step_energy;
  const bool has_prices = energy.tokens > 0 || energy.price > 0 ||
                          energy.carbon > 0 || energy.pue != 1;
  if (energy.power.empty()) {
    return has_prices
               ? absl::InvalidArgumentError(
                     "command line: --tokens, --energy-price, --carbon and "
                     "--pue need --energy, found none")
               : absl::OkStatus();
  }
  if (flags.output.format == OutputFlags::Format::kCsv) {
    return absl::InvalidArgumentError(
        "command line: --energy is given with --format csv, expected table or "
        "json");
  }
  if (energy.pue < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: --pue is ", energy.pue, ", expected 1 or more"));
  }
  if (energy.tokens == 0 && has_prices) {
    return absl::InvalidArgumentError(
        "command line: --energy-price, --carbon and --pue are of a run, "
        "expected --tokens, too");
  }
  return plan::LoadPowerModel(energy.power).status();
}

absl::Status CheckEnergyOf(const Flags& flags,
                           const scenarios::ResolvedScenario& scenario) {
  const StepEnergyFlags& energy = flags.step_energy;
  if (energy.power.empty()) return absl::OkStatus();
  if (energy.tokens > 0 && (scenario.given_costs ||
                            scenario.scenario.batch().sequence_length() == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: --tokens is given, but a step of ", scenario.label,
        " has no known number of tokens, expected a model with "
        "a sequence length, or no --tokens"));
  }
  ASSIGN_OR_RETURN(const PowerModel model, plan::LoadPowerModel(energy.power));
  if (scenario.given_costs) return absl::OkStatus();
  std::set<std::string> others = {scenario.device.name()};
  for (const DeviceProfile& other : scenario.other_devices) {
    others.insert(other.name());
  }
  std::erase_if(others, [&](const std::string& name) {
    return absl::StartsWith(name, model.device());
  });
  if (!others.empty()) {
    PrintWarning(
        absl::StrCat("--energy: the power model is of ", model.device(),
                     ", the cluster has ", absl::StrJoin(others, ", ")),
        flags.output);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> WithEnergy(const Flags& flags, std::string view,
                                       std::span<const Result> results) {
  const StepEnergyFlags& given = flags.step_energy;
  if (given.power.empty()) return view;
  ASSIGN_OR_RETURN(const PowerModel model, plan::LoadPowerModel(given.power));
  std::vector<plan::StepEnergy> energies;
  std::vector<std::string> names;
  for (const Result& result : results) {
    ASSIGN_OR_RETURN(energies.emplace_back(),
                     plan::EnergyOfStep(result, model,
                                        {.tokens = given.tokens,
                                         .price_per_kwh = given.price,
                                         .grams_co2_per_kwh = given.carbon,
                                         .pue = given.pue}));
    names.push_back(result.schedule());
  }
  return flags.output.format == OutputFlags::Format::kJson
             ? plan::WithEnergyJson(view, model, energies)
             : absl::StrCat(view, "\n",
                            plan::StepEnergyTable(model, names, energies));
}

}  // namespace weir::cli
