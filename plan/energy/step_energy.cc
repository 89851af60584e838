// SPDX-License-Identifier: Apache-2.0
#include "plan/energy/step_energy.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"

namespace weir::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kJoulesPerKwh = 3.6e6;

std::string Number(double number) { return absl::StrFormat("%.4g", number); }

struct EnergyRow {
  const char* name;
  std::function<std::optional<double>(const StepEnergy&)> value;
  std::string (*print)(double);
};

std::vector<EnergyRow> EnergyRows() {
  return {
      {"energy of a step", [](const StepEnergy& e) { return e.joules(); },
       FormatJoules},
      {"  computing", [](const StepEnergy& e) { return e.compute_joules; },
       FormatJoules},
      {"  communicating",
       [](const StepEnergy& e) { return e.communication_joules; },
       FormatJoules},
      {"  waiting", [](const StepEnergy& e) { return e.waiting_joules; },
       FormatJoules},
      {"  rest of the nodes", [](const StepEnergy& e) { return e.node_joules; },
       FormatJoules},
      {"W per GPU with node",
       [](const StepEnergy& e) { return e.watts_per_gpu; }, Number},
      {"J per token", [](const StepEnergy& e) { return e.joules_per_token; },
       Number},
      {"run, kWh", [](const StepEnergy& e) { return e.run_kwh; }, FormatCount},
      {"run, price", [](const StepEnergy& e) { return e.run_price; },
       FormatCount},
      {"run, kg CO2", [](const StepEnergy& e) { return e.run_kg_co2; },
       FormatCount},
  };
}

Json JsonOf(const StepEnergy& energy, const PowerModel& model) {
  Json json = {{"power_model", model.name()},
               {"joules_per_step", energy.joules()},
               {"compute_joules", energy.compute_joules},
               {"communication_joules", energy.communication_joules},
               {"waiting_joules", energy.waiting_joules},
               {"node_joules", energy.node_joules},
               {"watts_per_gpu", energy.watts_per_gpu}};
  const auto add = [&](const char* key, const std::optional<double>& value) {
    if (value.has_value()) json[key] = *value;
  };
  add("joules_per_token", energy.joules_per_token);
  add("run_kwh", energy.run_kwh);
  add("run_price", energy.run_price);
  add("run_kg_co2", energy.run_kg_co2);
  return json;
}

}  // namespace

void FillRunEnergy(const Result& result, const EnergyPrices& prices,
                   StepEnergy* energy) {
  if (!result.has_tokens_per_second()) return;
  const double tokens = result.tokens_per_second() * result.batch_seconds();
  energy->joules_per_token = energy->joules() / tokens;
  if (!(prices.tokens > 0)) return;
  const double kwh =
      prices.pue * *energy->joules_per_token * prices.tokens / kJoulesPerKwh;
  energy->run_kwh = kwh;
  if (prices.price_per_kwh > 0) energy->run_price = kwh * prices.price_per_kwh;
  if (prices.grams_co2_per_kwh > 0) {
    energy->run_kg_co2 = kwh * prices.grams_co2_per_kwh / 1000;
  }
}

std::string FormatJoules(double joules) {
  if (joules >= 1e6) return absl::StrFormat("%.4g MJ", joules / 1e6);
  if (joules >= 1e3) return absl::StrFormat("%.4g kJ", joules / 1e3);
  return absl::StrFormat("%.4g J", joules);
}

absl::StatusOr<StepEnergy> EnergyOfStep(const Result& result,
                                        const PowerModel& model,
                                        const EnergyPrices& prices) {
  if (!result.has_breakdown() || result.ranks_size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--energy: ", result.name(),
                     " has no parts of its step, expected a simulated result"));
  }
  const StepBreakdown& parts = result.breakdown();
  const double compute = parts.compute_seconds() + parts.optimizer_seconds();
  const double communication = parts.tensor_communication_seconds() +
                               parts.expert_communication_seconds() +
                               parts.context_communication_seconds();
  const double waiting =
      std::max(result.batch_seconds() - compute - communication, 0.0);
  const double num_gpus = result.ranks_size();
  StepEnergy energy;
  energy.compute_joules = num_gpus * compute * model.compute_watts().value();
  energy.communication_joules =
      num_gpus * communication * model.communication_watts().value();
  energy.waiting_joules = num_gpus * waiting * model.waiting_watts().value();
  energy.node_joules =
      num_gpus * result.batch_seconds() * model.node_watts().value();
  energy.watts_per_gpu = energy.joules() / num_gpus / result.batch_seconds();
  FillRunEnergy(result, prices, &energy);
  return energy;
}

std::string StepEnergyTable(const PowerModel& model,
                            const std::vector<std::string>& names,
                            std::span<const StepEnergy> energies) {
  TextTable table;
  table.header = {absl::StrCat("energy (", Ascii(model.name()), ")")};
  for (const std::string& name : names) table.header.push_back(Ascii(name));
  for (const EnergyRow& row : EnergyRows()) {
    std::vector<std::string> cells = {row.name};
    bool has_value = false;
    for (const StepEnergy& energy : energies) {
      const std::optional<double> value = row.value(energy);
      has_value = has_value || value.has_value();
      cells.push_back(value.has_value() ? row.print(*value) : "-");
    }
    if (has_value) table.rows.push_back(std::move(cells));
  }
  return PrintTable(table);
}

std::string WithEnergyJson(absl::string_view json, const PowerModel& model,
                           std::span<const StepEnergy> energies) {
  Json envelope = Json::parse(json);
  if (envelope.contains("result")) {
    envelope["result"]["energy"] = JsonOf(energies.front(), model);
  } else {
    for (size_t i = 0; i < energies.size(); ++i) {
      envelope["results"][i]["energy"] = JsonOf(energies[i], model);
    }
  }
  return DumpJson(envelope, 2) + "\n";
}

}  // namespace weir::plan
