// SPDX-License-Identifier: Apache-2.0
#include "results/compare/accuracy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/csv.h"
#include "base/text.h"
#include "base/text_table.h"

namespace weir::results {
namespace {

constexpr size_t kNumWorstRows = 5;

std::string Signed(double error) {
  return absl::StrFormat("%+.1f %%", 100 * error);
}

std::string Percent(double error) {
  return absl::StrFormat("%.1f %%", 100 * error);
}

std::string Number(double value) { return absl::StrFormat("%.4g", value); }

std::string UseCell(double memory_use) {
  return memory_use > 0 ? absl::StrFormat("%.5f", memory_use) : "";
}

std::string RowTable(const QuantityErrors& errors, bool all) {
  std::vector<const ComparedNumber*> worst = errors.numbers;
  std::stable_sort(worst.begin(), worst.end(), [](auto* a, auto* b) {
    return std::abs(a->error()) > std::abs(b->error());
  });
  if (!all && worst.size() > kNumWorstRows) worst.resize(kNumWorstRows);
  const bool intervals = errors.num_intervals > 0;
  TextTable table;
  table.header = {"line", "run", "measured", "predicted", "error", ""};
  table.left = {false, true, false, false, false, true};
  if (intervals) {
    table.header.insert(table.header.end() - 1, {"90 % interval", "inside"});
    table.left = {false, true, false, false, false, false, true, true};
  }
  for (const ComparedNumber* number : worst) {
    table.rows.push_back({absl::StrCat(number->line), Ascii(number->row),
                          Number(number->measured), Number(number->predicted),
                          Signed(number->error()),
                          number->fits_memory ? "" : "predicted not to fit"});
    if (!intervals) continue;
    std::vector<std::string>& row = table.rows.back();
    if (number->has_interval()) {
      row.insert(row.end() - 1, {absl::StrCat(Number(number->low), " to ",
                                              Number(number->high)),
                                 number->inside() ? "yes" : "no"});
    } else {
      row.insert(row.end() - 1, {"-", "-"});
    }
  }
  return PrintTable(table);
}

std::string SummaryTable(const std::vector<QuantityErrors>& quantities) {
  TextTable table;
  table.header = {"quantity", "count",           "mean |error|", "bias",
                  "median",   "90th percentile", "worst",        "of"};
  table.left = {true, false, false, false, false, false, false, true};
  table.optional = {0, 0, 0, 0, 1, 2, 0, 0};
  const bool intervals = std::any_of(
      quantities.begin(), quantities.end(),
      [](const QuantityErrors& errors) { return errors.num_intervals > 0; });
  if (intervals) {
    table.header.push_back("inside interval");
    table.left.push_back(false);
  }
  for (const QuantityErrors& errors : quantities) {
    const ErrorStatistics& statistics = errors.statistics;
    const ComparedNumber& worst = *errors.numbers[statistics.worst_row];
    table.rows.push_back(
        {errors.quantity, absl::StrCat(statistics.num_rows),
         Percent(statistics.mean_absolute), Signed(statistics.bias),
         Percent(statistics.median_absolute), Percent(statistics.percentile_90),
         Signed(statistics.worst), absl::StrCat("line ", worst.line)});
    if (!intervals) continue;
    table.rows.back().push_back(
        errors.num_intervals == 0
            ? "-"
            : Percent(1.0 * errors.num_inside / errors.num_intervals));
  }
  return PrintTable(table);
}

void AppendSkipped(const Accuracy& accuracy, std::string* out) {
  if (accuracy.skipped.empty()) return;
  absl::StrAppend(out, "\n", accuracy.skipped.size(), " of ", accuracy.num_runs,
                  " runs could not be simulated:\n");
  for (const SkippedRun& run : accuracy.skipped) {
    absl::StrAppend(
        out, WrapText(absl::StrCat("  line ", run.line, ": ", Ascii(run.row),
                                   run.row.empty() ? "" : ": ",
                                   Ascii(run.reason), "\n")));
  }
}

void AppendOutOfMemoryRuns(const Accuracy& accuracy, std::string* out) {
  std::string wrong;
  int num_right = 0;
  for (const OutOfMemoryRun& run : accuracy.out_of_memory) {
    num_right += run.predicted_to_fit ? 0 : 1;
    if (run.predicted_to_fit) {
      absl::StrAppend(&wrong, "  line ", run.line, ": ", Ascii(run.row),
                      " ran out of memory, but is predicted to fit\n");
    }
  }
  if (!accuracy.out_of_memory.empty()) {
    absl::StrAppend(out, "\n", num_right, " of ", accuracy.out_of_memory.size(),
                    " runs that ran out of memory are predicted to do so\n",
                    wrong);
  }
  std::vector<int> lines;
  for (const ComparedNumber& number : accuracy.numbers) {
    if (number.fits_memory) continue;
    if (lines.empty() || lines.back() != number.line) {
      lines.push_back(number.line);
    }
  }
  if (!lines.empty()) {
    absl::StrAppend(
        out, "\n", lines.size(),
        " runs succeeded, but are predicted not to fit (included above)"
        "\n");
  }
}

}  // namespace

std::vector<QuantityErrors> ErrorsByQuantity(const Accuracy& accuracy) {
  std::vector<QuantityErrors> quantities;
  for (const ComparedNumber& number : accuracy.numbers) {
    auto at = std::find_if(
        quantities.begin(), quantities.end(),
        [&](const auto& q) { return q.quantity == number.quantity; });
    if (at == quantities.end()) {
      at = quantities.insert(at, QuantityErrors{number.quantity, {}, {}});
    }
    at->numbers.push_back(&number);
    if (!number.has_interval()) continue;
    ++at->num_intervals;
    if (number.inside()) ++at->num_inside;
  }
  for (QuantityErrors& errors : quantities) {
    std::vector<double> predicted, measured;
    for (const ComparedNumber* number : errors.numbers) {
      predicted.push_back(number->predicted);
      measured.push_back(number->measured);
    }
    errors.statistics = SummarizeErrors(predicted, measured);
  }
  return quantities;
}

double LargestMeanError(const Accuracy& accuracy) {
  double largest = 0;
  for (const QuantityErrors& errors : ErrorsByQuantity(accuracy)) {
    largest = std::max(largest, errors.statistics.mean_absolute);
  }
  return largest;
}

std::string AccuracyTable(const Accuracy& accuracy, bool all) {
  const std::vector<QuantityErrors> quantities = ErrorsByQuantity(accuracy);
  std::string out =
      absl::StrCat(Ascii(accuracy.label), ": ", accuracy.num_runs,
                   accuracy.num_runs == 1 ? " measured run" : " measured runs");
  if (accuracy.num_left_out > 0) {
    absl::StrAppend(&out, ", ", accuracy.num_left_out,
                    " more excluded by --where");
  }
  if (accuracy.num_not_reached > 0) {
    absl::StrAppend(&out, ", interrupted with ", accuracy.num_not_reached,
                    " of them not compared");
  }
  absl::StrAppend(&out, "\n");
  for (const QuantityErrors& errors : quantities) {
    const bool some = !all && errors.numbers.size() > kNumWorstRows;
    absl::StrAppend(&out, "\n", errors.quantity,
                    some ? ", five largest errors" : ", largest error first",
                    "\n", RowTable(errors, all));
  }
  if (!quantities.empty()) {
    absl::StrAppend(&out, "\n", SummaryTable(quantities));
  }
  AppendSkipped(accuracy, &out);
  AppendOutOfMemoryRuns(accuracy, &out);
  if (accuracy.calibration.has_value()) {
    absl::StrAppend(&out, "\n", CalibrationTable(*accuracy.calibration));
  }
  return out;
}

std::string AccuracyCsv(const Accuracy& accuracy) {
  std::string out =
      "line,row,quantity,measured,predicted,error,fits_memory,reason,low,high,"
      "memory_use\n";
  for (const ComparedNumber& number : accuracy.numbers) {
    absl::StrAppend(&out, number.line, ",", CsvField(number.row), ",",
                    number.quantity, ",", ShortestNumber(number.measured), ",",
                    absl::StrFormat("%.6g", number.predicted), ",",
                    absl::StrFormat("%.5f", number.error()), ",",
                    number.fits_memory ? "true" : "false", ",,");
    if (number.has_interval()) {
      absl::StrAppendFormat(&out, "%.6g,%.6g", number.low, number.high);
    } else {
      absl::StrAppend(&out, ",");
    }
    absl::StrAppend(&out, ",", UseCell(number.memory_use), "\n");
  }
  for (const OutOfMemoryRun& run : accuracy.out_of_memory) {
    absl::StrAppend(&out, run.line, ",", CsvField(run.row), ",,,,,",
                    run.predicted_to_fit ? "true" : "false",
                    ",measured not to fit,,,", UseCell(run.memory_use), "\n");
  }
  for (const SkippedRun& run : accuracy.skipped) {
    absl::StrAppend(&out, run.line, ",", CsvField(run.row), ",,,,,,",
                    CsvField(run.reason), ",,,\n");
  }
  return out;
}

}  // namespace weir::results
