// SPDX-License-Identifier: Apache-2.0
#include "results/compare/calibration.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"

namespace weir::results {
namespace {

std::string ErrorPercent(double error) {
  return absl::StrFormat("%.1f %%", 100 * error);
}

}  // namespace

std::string CalibrationTable(const Calibration& calibration) {
  if (calibration.figures.empty()) {
    return absl::StrCat("no parameters are proposed: ", calibration.why_none,
                        "\n");
  }
  TextTable table;
  table.header = {"parameter", "value",      "proposed", "factor",
                  "kind",      "deviations", "of"};
  table.left = {true, false, false, false, true, false, true};
  table.optional = {0, 0, 0, 0, 1, 0, 2};
  std::string settings;
  for (const ProposedFigure& figure : calibration.figures) {
    const double factor = figure.proposed / figure.value;
    table.rows.push_back(
        {Ascii(figure.path), absl::StrFormat("%.4g", figure.value),
         absl::StrFormat("%.4g +- %.1f %%", figure.proposed,
                         100 * figure.proposed_relative_error),
         absl::StrFormat("%.3g", factor), figure.kind,
         absl::StrFormat("%+.1f", std::log(factor) / figure.relative_error),
         Ascii(figure.owner)});
    absl::StrAppendFormat(&settings, " --set %s=%.6g", Ascii(figure.path),
                          figure.proposed);
  }
  std::string notes;
  for (const ProposedFigure& figure : calibration.figures) {
    if (figure.indistinguishable.empty()) continue;
    absl::StrAppend(&notes, Ascii(figure.path),
                    " changes these runs in the same proportions as ",
                    Ascii(absl::StrJoin(figure.indistinguishable, ", ")),
                    "; they do not show which is wrong\n");
  }
  return absl::StrCat(
      "proposed parameters, from ", calibration.num_runs, " runs and ",
      calibration.num_parameters, " candidates\n", PrintTable(table), notes,
      "mean |error| of runs left out: ", ErrorPercent(calibration.error_before),
      " before, ", ErrorPercent(calibration.error_after), " after (gain ",
      ErrorPercent(calibration.error_before - calibration.error_after), " +- ",
      ErrorPercent(calibration.gain_standard_error), ")\n",
      "mean |error| of all runs with the proposed values: ",
      ErrorPercent(calibration.error_applied), "\n", "apply:", settings, "\n");
}

std::string CalibrationJson(const Calibration& calibration) {
  using Json = nlohmann::ordered_json;
  Json json = {{"num_runs", calibration.num_runs},
               {"num_candidates", calibration.num_parameters},
               {"parameters", Json::array()}};
  for (const ProposedFigure& figure : calibration.figures) {
    json["parameters"].push_back(
        {{"owner", figure.owner},
         {"path", figure.path},
         {"kind", figure.kind},
         {"value", figure.value},
         {"proposed", figure.proposed},
         {"relative_error", figure.relative_error},
         {"proposed_relative_error", figure.proposed_relative_error},
         {"indistinguishable", figure.indistinguishable}});
  }
  if (calibration.figures.empty()) {
    json["reason"] = calibration.why_none;
  }
  json["cross_validated_error_before"] = calibration.error_before;
  json["cross_validated_error_after"] = calibration.error_after;
  json["gain_standard_error"] = calibration.gain_standard_error;
  if (!calibration.figures.empty()) {
    json["error_applied"] = calibration.error_applied;
  }
  return DumpJson(json);
}

}  // namespace weir::results
