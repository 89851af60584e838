// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <string>

#include "base/json_text.h"
#include "results/compare/accuracy.h"

namespace weir::results {
namespace {

using Json = nlohmann::ordered_json;

Json Statistics(const QuantityErrors& errors) {
  const ErrorStatistics& statistics = errors.statistics;
  Json json;
  json["quantity"] = errors.quantity;
  json["count"] = statistics.num_rows;
  json["mean_absolute_error"] = statistics.mean_absolute;
  json["bias"] = statistics.bias;
  json["median_absolute_error"] = statistics.median_absolute;
  json["percentile_90"] = statistics.percentile_90;
  json["worst"] = statistics.worst;
  json["worst_line"] = errors.numbers[statistics.worst_row]->line;
  if (errors.num_intervals > 0) {
    json["inside_interval"] = 1.0 * errors.num_inside / errors.num_intervals;
  }
  return json;
}

Json Number(const ComparedNumber& number) {
  Json json = {{"line", number.line},
               {"run", number.row},
               {"quantity", number.quantity},
               {"measured", number.measured},
               {"predicted", number.predicted},
               {"error", number.error()},
               {"fits_memory", number.fits_memory}};
  if (number.has_interval()) {
    json["low"] = number.low;
    json["high"] = number.high;
  }
  return json;
}

// Returns the columns of a row of the file.
Json Run(const MeasuredRow& row) {
  Json fields = Json::object();
  for (const MeasuredField& field : row.fields) {
    fields[field.column] = field.text;
  }
  return {{"line", row.line}, {"fields", fields}};
}

}  // namespace

std::string AccuracyJson(const Accuracy& accuracy) {
  Json result;
  result["num_runs"] = accuracy.num_runs;
  result["num_left_out"] = accuracy.num_left_out;
  result["num_not_reached"] = accuracy.num_not_reached;
  for (const char* key : {"statistics", "numbers", "skipped", "misfits"}) {
    result[key] = Json::array();
  }
  for (const QuantityErrors& errors : ErrorsByQuantity(accuracy)) {
    result["statistics"].push_back(Statistics(errors));
  }
  for (const ComparedNumber& number : accuracy.numbers) {
    result["numbers"].push_back(Number(number));
  }
  result["runs"] = Json::array();
  for (const MeasuredRow& row : accuracy.runs) {
    result["runs"].push_back(Run(row));
  }
  for (const SkippedRun& run : accuracy.skipped) {
    result["skipped"].push_back(
        {{"line", run.line}, {"run", run.row}, {"reason", run.reason}});
  }
  for (const OutOfMemoryRun& run : accuracy.out_of_memory) {
    result["misfits"].push_back({{"line", run.line},
                                 {"run", run.row},
                                 {"predicted_to_fit", run.predicted_to_fit}});
  }
  if (accuracy.calibration.has_value()) {
    result["calibration"] = Json::parse(CalibrationJson(*accuracy.calibration));
  }
  return DumpJson(result);
}

}  // namespace weir::results
