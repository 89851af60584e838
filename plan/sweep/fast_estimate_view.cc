// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/fast_estimate_view.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/textproto.h"
#include "base/units.h"
#include "base/version.h"
#include "models/recipe.h"
#include "plan/sweep/point.h"
#include "results/summary.h"
#include "results/views/features.h"
#include "schedules/own_name.h"
#include "sim/fill_result.h"

namespace weir::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxRankRows = 16;

std::string SymmetryText(const scenarios::ResolvedScenario& scenario,
                         const sim::FastEstimate& run) {
  const std::string all = absl::StrCat(scenario.placement.num_gpus(), " GPUs");
  return run.reduced ? absl::StrCat(run.num_simulated_gpus, " of ", all,
                                    ", the others are symmetric")
                     : absl::StrCat("all ", all, ": ", run.not_reduced);
}

std::string ExtrapolationText(const sim::FastEstimate& run) {
  if (!run.extrapolated) {
    return absl::StrCat("all ", run.num_simulated_microbatches, ": ",
                        run.not_extrapolated);
  }
  return absl::StrCat(run.num_simulated_microbatches, " of ",
                      run.num_microbatches, ", the steady state repeats");
}

std::string MemoryText(const SweepOutcome& outcome) {
  if (!(outcome.peak_memory_bytes() > 0)) return "-";
  return absl::StrCat(FormatBytes(outcome.peak_memory_bytes()),
                      outcome.fits_memory() ? "" : ", does not fit");
}

std::string RankBlock(const sim::FastEstimate& run) {
  TextTable table;
  table.header = {"rank", "peak memory"};
  for (size_t rank = 0; rank < run.peak_bytes.size(); ++rank) {
    if (!(run.peak_bytes[rank] > 0)) continue;
    if (table.rows.size() == kMaxRankRows) {
      return absl::StrCat("\n", PrintTable(table), "... ",
                          run.peak_bytes.size() - rank, " more\n");
    }
    table.rows.push_back(
        {absl::StrCat(rank), FormatBytes(run.peak_bytes[rank])});
  }
  return table.rows.empty() ? "" : absl::StrCat("\n", PrintTable(table));
}

}  // namespace

std::string FastEstimateTable(const scenarios::ResolvedScenario& scenario,
                              const sim::FastEstimate& run) {
  SweepOutcome outcome;
  FillFigures(run, scenario, &outcome);
  TextTable table;
  table.left = {true, true};
  table.header = {
      "schedule",
      Ascii(schedules::OwnScheduleName(scenario.scenario.schedule()))};
  table.rows = {
      {"step time", FormatSeconds(outcome.batch_seconds())},
      {"samples/s", outcome.has_samples_per_second()
                        ? FormatCount(outcome.samples_per_second())
                        : "-"},
      {"tokens/s", outcome.has_tokens_per_second()
                       ? FormatCount(outcome.tokens_per_second())
                       : "-"},
      {"peak memory", MemoryText(outcome)},
      {"method", absl::StrCat("fast: ", outcome.method(),
                              run.shared_links ? ", with contention" : "")},
      {"GPUs simulated", SymmetryText(scenario, run)},
      {"microbatches simulated", ExtrapolationText(run)}};
  const Training& training = scenario.scenario.training();
  if (!models::FormatsOf(scenario.recipe).empty()) {
    table.rows.insert(
        table.rows.begin(),
        {"number format",
         absl::StrCat(Ascii(training.recipe()),
                      training.precision() == MIXED_FP16 ? " (fp16" : " (bf16",
                      " otherwise)")});
  }
  if (const std::string features =
          absl::StrJoin(results::FeaturesOf(scenario.scenario), ", ");
      !features.empty()) {
    table.rows.push_back({"features", features});
  }
  if (const std::string text =
          results::DefaultsText(sim::ReportDefaults(scenario.used_defaults));
      !text.empty()) {
    table.rows.push_back({"defaults", Ascii(text)});
  }
  return absl::StrCat(PrintTable(table), RankBlock(run));
}

std::string FastEstimateJson(absl::string_view command,
                             const scenarios::ResolvedScenario& scenario,
                             const sim::FastEstimate& run) {
  SweepOutcome outcome;
  FillFigures(run, scenario, &outcome);
  Json result = {
      {"schedule", schedules::OwnScheduleName(scenario.scenario.schedule())},
      {"method", outcome.method()},
      {"batch_seconds", outcome.batch_seconds()},
      {"makespan_seconds", outcome.makespan_seconds()}};
  if (outcome.has_samples_per_second()) {
    result["samples_per_second"] = outcome.samples_per_second();
  }
  if (outcome.has_tokens_per_second()) {
    result["tokens_per_second"] = outcome.tokens_per_second();
  }
  result["peak_memory_bytes"] = outcome.peak_memory_bytes();
  result["fits_memory"] = outcome.fits_memory();
  result["rank_peak_memory_bytes"] = run.peak_bytes;
  result["num_gpus"] = scenario.placement.num_gpus();
  result["num_simulated_gpus"] = run.num_simulated_gpus;
  if (!run.reduced) result["not_reduced"] = std::string(run.not_reduced);
  result["num_microbatches"] = scenario.num_microbatches;
  result["num_simulated_microbatches"] = run.num_simulated_microbatches;
  if (!run.extrapolated) {
    result["not_extrapolated"] = std::string(run.not_extrapolated);
  }
  result["shared_links"] = run.shared_links;
  if (const auto features = results::FeaturesOf(scenario.scenario);
      !features.empty()) {
    result["features"] = features;
  }
  const scenarios::UsedDefaults& defaults = scenario.used_defaults;
  if (!defaults.used.empty() || !defaults.not_used.empty()) {
    result["defaults"] = {{"set", defaults.set},
                          {"used", defaults.used},
                          {"not_used", defaults.not_used}};
  }
  const Json envelope = {{"tool", "weir"},
                         {"version", std::string(WeirVersion())},
                         {"command", std::string(command)},
                         {"config", PrintTextProto(scenario.scenario)},
                         {"result", std::move(result)},
                         {"warnings", scenario.warnings}};
  return DumpJson(envelope, 2) + "\n";
}

}  // namespace weir::plan
