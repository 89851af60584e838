// SPDX-License-Identifier: Apache-2.0
#include "results/views/explanation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "results/summary.h"
#include "results/views/cells.h"
#include "results/views/views.h"

namespace weir::results {
namespace {

constexpr double kLeastShown = 0.0005;
constexpr size_t kMaxSource = 60;
// A part that would have to be longer by a larger factor is no explanation.
constexpr double kMostOfPart = 100;
// Rows of a table about a measurement, unless all are asked for.
constexpr size_t kMostRows = 10;

// Shortens a table and returns a line that says so.
std::string Shorten(bool all, TextTable* table) {
  if (all || table->rows.size() <= kMostRows) return "";
  const size_t more = table->rows.size() - kMostRows;
  table->rows.resize(kMostRows);
  return absl::StrCat("... ", more, " more (--all)\n");
}

std::string Seconds(double seconds) {
  return seconds == 0 ? "-" : FormatSeconds(seconds);
}

std::string PartsTable(const Result& result) {
  TextTable table;
  table.header = {"part", "seconds", "of the step", "forward", "backward"};
  for (const PartSeconds& part : result.parts()) {
    table.rows.push_back(
        {part.name(), FormatSeconds(part.seconds()),
         FormatPercent(part.seconds() / result.batch_seconds()),
         Seconds(part.forward_seconds()), Seconds(part.backward_seconds())});
  }
  return PrintTable(table);
}

std::vector<FigureInfluence> Sorted(const Explanation& explanation) {
  std::vector<FigureInfluence> figures = explanation.figures;
  std::stable_sort(figures.begin(), figures.end(),
                   [](const FigureInfluence& a, const FigureInfluence& b) {
                     return std::abs(a.elasticity) > std::abs(b.elasticity);
                   });
  return figures;
}

// Returns, for example, "matrix_rates[3].peak_flops (nvfp4)".
std::string ShownPath(const FigureInfluence& figure) {
  if (figure.format.empty()) return Ascii(figure.path);
  return absl::StrCat(Ascii(figure.path), " (", Ascii(figure.format), ")");
}

std::string FiguresTable(const Explanation& explanation, bool all) {
  TextTable table;
  table.header = {"fraction", "of", "parameter", "value", "kind", "source"};
  table.left = {false, true, true, false, true, true};
  table.optional = {0, 0, 0, 0, 1, 2};
  int num_small = 0;
  double small = 0;
  for (const FigureInfluence& figure : Sorted(explanation)) {
    const double part = std::abs(figure.elasticity);
    if (part < kLeastShown) {
      ++num_small;
      small += part;
      continue;
    }
    table.rows.push_back({absl::StrFormat("%.1f %%", 100 * part),
                          Ascii(figure.owner), ShownPath(figure),
                          absl::StrFormat("%.4g", figure.value), figure.kind,
                          Shortened(figure.source, kMaxSource)});
  }
  const std::string more = Shorten(all, &table);
  std::string text = absl::StrCat(PrintTable(table), more);
  if (num_small > 0) {
    absl::StrAppend(&text, num_small, " more, ",
                    absl::StrFormat("%.2f %%", 100 * small), " together\n");
  }
  absl::StrAppend(&text, explanation.num_without_influence,
                  " others have no influence\n");
  return text;
}

// Returns the components of the interval.
std::string UncertaintyTable(const Uncertainty& uncertainty) {
  TextTable table;
  table.header = {"source of uncertainty", "one standard deviation"};
  const std::pair<const char*, double> rows[] = {
      {"parameters", uncertainty.figures()},
      {"individual kernels", uncertainty.kernels()},
      {"individual collectives", uncertainty.collectives()},
      {"whole step", uncertainty.step()},
      {"whole step, if no measured step of this kind is known",
       uncertainty.unrecorded()},
      {"whole step, upper limit of the interval only",
       uncertainty.slower_step()},
      {"whole step, lower limit of the interval only",
       uncertainty.faster_step()}};
  for (const auto& [name, error] : rows) {
    table.rows.push_back({name, absl::StrFormat("%.1f %%", 100 * error)});
  }
  return PrintTable(table);
}

// Returns "measured 12.3 s, predicted 11 s: -10.6 %, inside the 90 % interval".
std::string SummaryLine(const Result& result, double measured) {
  std::string text = absl::StrFormat(
      "measured %s, predicted %s: %+.1f %%", FormatSeconds(measured),
      FormatSeconds(result.batch_seconds()),
      100 * (result.batch_seconds() / measured - 1));
  if (!result.has_batch_seconds_low()) return text + "\n";
  const bool inside = result.batch_seconds_low() <= measured &&
                      measured <= result.batch_seconds_high();
  absl::StrAppendFormat(&text, ", %s the 90 %% interval (%s to %s)\n",
                        inside ? "inside" : "outside",
                        FormatSeconds(result.batch_seconds_low()),
                        FormatSeconds(result.batch_seconds_high()));
  return WrapText(text);
}

// Returns the factor by which a part would have to change, all others being
// exact; absent if it would have to be negative or does not exist.
std::optional<double> FactorOfPart(const Result& result,
                                   const PartSeconds& part, double measured) {
  const double factor =
      1 + (measured - result.batch_seconds()) / part.seconds();
  if (!(part.seconds() > 0) || factor < 0) return {};
  return factor;
}

// Returns "cannot explain it alone: a, b", or only their number.
std::string InsufficientText(const std::vector<std::string>& names, bool all) {
  if (names.empty()) return "";
  if (!all && names.size() > kMostRows) {
    return absl::StrCat(names.size(), " cannot explain it alone (--all)\n");
  }
  return WrapText(absl::StrCat(
      "cannot explain it alone: ", Ascii(absl::StrJoin(names, ", ")), "\n"));
}

std::string SettingsTable(const MeasuredExplanation& measured) {
  if (measured.settings.empty()) return "none of those tried\n";
  TextTable table;
  table.header = {"setting", "step", "against measured"};
  table.left = {true, false, false};
  for (const SettingCause& cause : measured.settings) {
    table.rows.push_back(
        {Ascii(cause.setting), FormatSeconds(cause.seconds),
         absl::StrFormat(
             "%+.1f %%",
             100 * (cause.seconds / measured.measured_seconds - 1))});
  }
  return PrintTable(table);
}

std::string PartCausesTable(const Result& result, double measured, bool all) {
  TextTable table;
  table.header = {"part", "seconds", "would be", "factor"};
  std::vector<std::string> insufficient;
  std::vector<std::pair<double, const PartSeconds*>> factors;
  for (const PartSeconds& part : result.parts()) {
    const auto factor = FactorOfPart(result, part, measured);
    if (!factor.has_value() || *factor > kMostOfPart) {
      insufficient.push_back(part.name());
      continue;
    }
    factors.emplace_back(*factor, &part);
  }
  // The part that would change least is the most likely.
  std::stable_sort(
      factors.begin(), factors.end(), [](const auto& a, const auto& b) {
        return std::abs(std::log(a.first)) < std::abs(std::log(b.first));
      });
  for (const auto& [factor, part] : factors) {
    table.rows.push_back({part->name(), FormatSeconds(part->seconds()),
                          FormatSeconds(factor * part->seconds()),
                          absl::StrFormat("%.3g", factor)});
  }
  const std::string more = Shorten(all, &table);
  return absl::StrCat(PrintTable(table), more,
                      InsufficientText(insufficient, all));
}

std::string FigureCausesTable(const MeasuredExplanation& measured, bool all) {
  TextTable table;
  table.header = {"deviations", "factor", "parameter", "value",
                  "would be",   "kind",   "of"};
  table.left = {false, false, true, false, false, true, true};
  table.optional = {0, 0, 0, 0, 0, 1, 2};
  for (const FigureCause& cause : measured.causes) {
    table.rows.push_back({cause.deviations.has_value()
                              ? absl::StrFormat("%.1f", *cause.deviations)
                              : "-",
                          absl::StrFormat("%.3g", cause.factor()),
                          Ascii(cause.path),
                          absl::StrFormat("%.4g", cause.value),
                          absl::StrFormat("%.4g", cause.explaining_value),
                          cause.kind, Ascii(cause.owner)});
  }
  const std::string more = Shorten(all, &table);
  return absl::StrCat(PrintTable(table), more,
                      InsufficientText(measured.insufficient, all));
}

std::string MeasuredTables(const Result& result,
                           const MeasuredExplanation& measured, bool all) {
  return absl::StrCat(
      SummaryLine(result, measured.measured_seconds),
      "\nsettings of the run that bring the prediction nearer\n",
      SettingsTable(measured),
      "\nparts of the busiest GPU that could explain the difference alone\n",
      PartCausesTable(result, measured.measured_seconds, all),
      "\nparameters that could explain the difference alone, by standard "
      "deviations of\ntheir own uncertainty (-: none)\n",
      FigureCausesTable(measured, all));
}

nlohmann::ordered_json MeasuredJson(const Result& result,
                                    const MeasuredExplanation& measured) {
  using Json = nlohmann::ordered_json;
  Json json = {
      {"seconds", measured.measured_seconds},
      {"error", result.batch_seconds() / measured.measured_seconds - 1}};
  if (result.has_batch_seconds_low()) {
    json["inside_interval"] =
        result.batch_seconds_low() <= measured.measured_seconds &&
        measured.measured_seconds <= result.batch_seconds_high();
  }
  json["settings"] = Json::array();
  for (const SettingCause& cause : measured.settings) {
    json["settings"].push_back(
        {{"setting", cause.setting}, {"batch_seconds", cause.seconds}});
  }
  json["parts"] = Json::array();
  for (const PartSeconds& part : result.parts()) {
    const auto factor = FactorOfPart(result, part, measured.measured_seconds);
    Json one = {{"name", part.name()}, {"seconds", part.seconds()}};
    one["factor"] = factor.has_value() ? Json(*factor) : Json();
    json["parts"].push_back(std::move(one));
  }
  json["parameters"] = Json::array();
  for (const FigureCause& cause : measured.causes) {
    Json one = {{"owner", cause.owner},
                {"path", cause.path},
                {"kind", cause.kind},
                {"value", cause.value},
                {"explaining_value", cause.explaining_value},
                {"factor", cause.factor()},
                {"relative_error", cause.relative_error}};
    one["deviations"] =
        cause.deviations.has_value() ? Json(*cause.deviations) : Json();
    json["parameters"].push_back(std::move(one));
  }
  json["insufficient_parameters"] = measured.insufficient;
  return json;
}

std::map<std::string, double> ByKind(const Explanation& explanation) {
  std::map<std::string, double> kinds;
  for (const FigureInfluence& figure : explanation.figures) {
    kinds[figure.kind] += std::abs(figure.elasticity);
  }
  return kinds;
}

}  // namespace

std::string ExplanationTable(const Explanation& explanation, bool all) {
  const bool whole = all || !explanation.measured.has_value();
  const Result& result = explanation.result;
  std::string text =
      absl::StrCat(ShapeTitle(result.name(), result), Ascii(RowName(result)),
                   ": ", TimeIntervalCell(result), " per step\n");
  if (result.has_model_flops_utilization()) {
    absl::StrAppend(&text, TeraflopsHeader(result), " ", TeraflopsCell(result),
                    ", ", UtilizationHeader(result), " ",
                    UtilizationCell(result), "\n");
  }
  const std::string evidence = EvidenceCell(result);
  if (!evidence.empty()) {
    absl::StrAppend(&text,
                    WrapText(absl::StrCat("basis of the estimate: ", evidence,
                                          " (docs/uncertainty.md)\n")));
  }
  if (result.busiest_gpu() < static_cast<uint32_t>(result.ranks_size())) {
    const RankResult& rank = result.ranks(result.busiest_gpu());
    absl::StrAppend(&text, "\ntime of a step on the busiest GPU (rank ",
                    rank.rank(), ", gpu ", rank.gpu(), ")\n");
  }
  absl::StrAppend(&text, PartsTable(result),
                  "\nparameters, by the fraction of the time that is "
                  "proportional to them\n",
                  FiguresTable(explanation, whole), "\n");
  TextTable kinds;
  kinds.header = {"kind", "sum of fractions"};
  for (const auto& [kind, part] : ByKind(explanation)) {
    kinds.rows.push_back({kind, absl::StrFormat("%.1f %%", 100 * part)});
  }
  absl::StrAppend(&text, PrintTable(kinds),
                  "The sums may exceed 100 %: a rate and its efficiency, for "
                  "example, both\nchange the same seconds.\n");
  if (result.has_uncertainty()) {
    absl::StrAppend(&text, "\n", UncertaintyTable(result.uncertainty()));
  }
  if (explanation.measured.has_value()) {
    absl::StrAppend(&text, "\n",
                    MeasuredTables(result, *explanation.measured, all));
  }
  return text;
}

std::string ExplanationJson(absl::string_view command,
                            const Explanation& explanation) {
  using Json = nlohmann::ordered_json;
  Json json = Json::parse(ResultJson(command, explanation.result));
  Json figures = Json::array();
  for (const FigureInfluence& figure : Sorted(explanation)) {
    figures.push_back({{"owner", figure.owner},
                       {"path", figure.path},
                       {"value", figure.value},
                       {"kind", figure.kind},
                       {"source", figure.source},
                       {"elasticity", figure.elasticity}});
  }
  json["result"]["parameters"] = std::move(figures);
  json["result"]["num_parameters_without_influence"] =
      explanation.num_without_influence;
  Json kinds = Json::object();
  for (const auto& [kind, part] : ByKind(explanation)) kinds[kind] = part;
  json["result"]["parts_by_kind"] = std::move(kinds);
  if (explanation.measured.has_value()) {
    json["result"]["measured"] =
        MeasuredJson(explanation.result, *explanation.measured);
  }
  return DumpJson(json, 2) + "\n";
}

}  // namespace weir::results
