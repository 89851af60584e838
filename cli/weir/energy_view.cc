// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/energy_view.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "plan/energy/measured_power.h"
#include "plan/energy/power_model.h"
#include "plan/energy/step_energy.h"
#include "results/import/trace_source.h"

namespace weir::cli {
namespace {

absl::StatusOr<plan::MeasuredPower> MeasuredPowerOf(
    const StepEnergyFlags& energy) {
  plan::MeasuredPower power;
  ASSIGN_OR_RETURN(const std::string text,
                   results::ReadTextOrGzip(energy.power));
  ASSIGN_OR_RETURN(power.profile, plan::ReadClockProfile(energy.power, text));
  power.blocking_watts = energy.blocking_watts;
  power.megahertz = energy.clock;
  return power;
}

}  // namespace

absl::Status CheckEnergy(const Flags& flags, bool with_timeline) {
  const StepEnergyFlags& energy = flags.step_energy;
  const bool has_prices = energy.tokens > 0 || energy.price > 0 ||
                          energy.carbon > 0 || energy.pue != 1;
  if (energy.power.empty()) {
    if (has_prices) {
      return absl::InvalidArgumentError(
          "command line: --tokens, --energy-price, --carbon and --pue need "
          "--energy, found none");
    }
    if (energy.blocking_watts > 0 || energy.clock > 0) {
      return absl::InvalidArgumentError(
          "command line: --blocking-power and --clock need --energy with a "
          ".csv, found none");
    }
    return absl::OkStatus();
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
        "command line: --energy-price, --carbon and --pue apply to a whole run "
        "and require --tokens");
  }
  if (!energy.is_measured()) {
    if (energy.blocking_watts > 0 || energy.clock > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "command line: --blocking-power and --clock are of measured passes, "
          "but --energy is ",
          energy.power, ", expected a .csv or .csv.gz"));
    }
    return plan::LoadPowerModel(energy.power).status();
  }
  if (!with_timeline) {
    return absl::InvalidArgumentError(
        absl::StrCat("command line: --energy is ", energy.power,
                     ", expected a power model, or weir simulate"));
  }
  if (!(energy.blocking_watts > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: --energy is ", energy.power,
        ", expected --blocking-power with the watts of a GPU that waits"));
  }
  return MeasuredPowerOf(energy).status();
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
  if (energy.is_measured()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const PowerModel model, plan::LoadPowerModel(energy.power));
  if (scenario.given_costs) return absl::OkStatus();
  std::set<std::string> others = {scenario.device.name()};
  for (const DeviceProfile& other : scenario.other_devices) {
    others.insert(other.name());
  }
  const std::string warning = plan::OtherDevices(model, std::move(others));
  if (!warning.empty()) {
    PrintWarning(absl::StrCat("--energy: ", warning), flags.output);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> WithEnergy(const Flags& flags, std::string view,
                                       std::span<const Result> results) {
  const StepEnergyFlags& given = flags.step_energy;
  if (given.power.empty()) return view;
  PowerModel model;
  plan::MeasuredPower measured;
  if (given.is_measured()) {
    model.set_name(given.power);
    ASSIGN_OR_RETURN(measured, MeasuredPowerOf(given));
    for (const std::string& note : measured.profile.notes) {
      PrintWarning(note, flags.output);
    }
  } else {
    ASSIGN_OR_RETURN(model, plan::LoadPowerModel(given.power));
  }
  const plan::EnergyPrices prices = {.tokens = given.tokens,
                                     .price_per_kwh = given.price,
                                     .grams_co2_per_kwh = given.carbon,
                                     .pue = given.pue};
  std::vector<plan::StepEnergy> energies;
  std::vector<std::string> names;
  for (const Result& result : results) {
    ASSIGN_OR_RETURN(energies.emplace_back(),
                     given.is_measured()
                         ? plan::EnergyOfPasses(result, measured, prices)
                         : plan::EnergyOfStep(result, model, prices));
    names.push_back(result.schedule());
  }
  return flags.output.format == OutputFlags::Format::kJson
             ? plan::WithEnergyJson(view, model, energies)
             : absl::StrCat(view, "\n",
                            plan::StepEnergyTable(model, names, energies));
}

}  // namespace weir::cli
