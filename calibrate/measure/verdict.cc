// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/verdict.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/csv.h"
#include "base/quantiles.h"
#include "base/text.h"
#include "base/text_table.h"

namespace weir::calibrate {
namespace {

constexpr size_t kNumWorst = 10;

using Rows = std::vector<ReportRow>;

const char* NameOf(CalibrationCheck::Verdict verdict) {
  switch (verdict) {
    case CalibrationCheck::Verdict::kHolds:
      return "holds";
    case CalibrationCheck::Verdict::kFails:
      return "FAILS";
    case CalibrationCheck::Verdict::kReported:
      return "reported";
    case CalibrationCheck::Verdict::kNotRun:
      break;
  }
  return "n/a";
}

// Returns the absolute value; infinity for NaN, which must fail.
double SizeOf(const JudgedRow& row) {
  return std::isnan(row.value) ? std::numeric_limits<double>::infinity()
                               : std::abs(row.value);
}

// Sorts worst first.
void SortBySize(std::vector<JudgedRow>* rows) {
  std::stable_sort(rows->begin(), rows->end(),
                   [](const JudgedRow& a, const JudgedRow& b) {
                     return SizeOf(a) > SizeOf(b);
                   });
}

// Returns the quantile of the absolute values. Requires: sorted worst first.
double QuantileOfRows(const std::vector<JudgedRow>& rows, double part) {
  std::vector<double> sizes;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    sizes.push_back(SizeOf(*row));
  }
  return QuantileOfSorted(sizes, part);
}

CalibrationCheck::Verdict Judge(double value, double limit) {
  return value <= limit ? CalibrationCheck::Verdict::kHolds
                        : CalibrationCheck::Verdict::kFails;
}

// Adds a check of a quantile of the rows (1: the worst).
void AddQuantile(const std::string& name, double part, double limit,
                 std::vector<JudgedRow> rows,
                 std::vector<CalibrationCheck>* checks) {
  CalibrationCheck check;
  check.name = name;
  check.limit = limit;
  check.num_rows = static_cast<int>(rows.size());
  if (!rows.empty()) {
    SortBySize(&rows);
    check.value = QuantileOfRows(rows, part);
    check.verdict = Judge(check.value, limit);
    rows.resize(std::min(rows.size(), kNumWorst));
    check.worst = std::move(rows);
  }
  checks->push_back(std::move(check));
}

void AddMedianAndTail(const std::string& name, double median, double tail,
                      const std::vector<JudgedRow>& rows,
                      std::vector<CalibrationCheck>* checks) {
  AddQuantile(absl::StrCat(name, ", median"), 0.5, median, rows, checks);
  AddQuantile(absl::StrCat(name, ", 95th percentile"), 0.95, tail, rows,
              checks);
}

std::vector<JudgedRow> Select(
    const Rows& rows, absl::string_view kind,
    const std::function<double(const ReportRow&)>& value) {
  std::vector<JudgedRow> selected;
  for (const ReportRow& row : rows) {
    if (row.kind == kind) selected.push_back({row.name, value(row)});
  }
  return selected;
}

// Returns measured seconds by name, of the model's own kernels and, with
// `grid`, of those measured only for fits.
std::map<std::string, double> SecondsOf(const Rows& rows, bool grid) {
  std::map<std::string, double> seconds;
  for (const ReportRow& row : rows) {
    if (row.kind == "kernel" || (grid && row.kind == "grid")) {
      seconds[row.name] = row.measured;
    }
  }
  return seconds;
}

void CheckOperations(const CalibrationReports& reports,
                     std::vector<CalibrationCheck>* checks) {
  Rows rows = reports.check;
  rows.insert(rows.end(), reports.run.begin(), reports.run.end());
  CalibrationCheck refused;
  refused.name = "wrong or failed operations";
  for (const ReportRow& row : rows) {
    refused.num_rows += row.kind == "verify" || row.kind == "refused";
    if (row.kind != "refused") continue;
    ++refused.value;
    if (refused.worst.size() < kNumWorst) {
      refused.worst.push_back({row.name, row.measured});
    }
  }
  if (refused.num_rows > 0) refused.verdict = Judge(refused.value, 0);
  checks->push_back(std::move(refused));
  AddQuantile(
      "operations vs double precision, worst relative error", 1, 1e-2,
      Select(rows, "verify", [](const ReportRow& row) { return row.measured; }),
      checks);
}

void CheckRepeats(const CalibrationReports& reports,
                  std::vector<CalibrationCheck>* checks) {
  const auto first = SecondsOf(reports.run, true);
  const auto second = SecondsOf(reports.repeated, true);
  std::vector<JudgedRow> rows;
  for (const auto& [name, seconds] : first) {
    const auto again = second.find(name);
    if (again == second.end() || seconds < kLeastJudgedSeconds) continue;
    rows.push_back({name, again->second / seconds - 1});
  }
  AddMedianAndTail("repeated calibration, kernels from 20 us", 0.005, 0.02,
                   rows, checks);
}

void CheckGemms(const CalibrationReports& reports,
                std::vector<CalibrationCheck>* checks) {
  const auto own = SecondsOf(reports.run, false);
  const auto best = SecondsOf(reports.best, true);
  CalibrationCheck check;
  check.name = "GEMMs of the model vs the fastest candidates, sum";
  check.limit = 0.03;
  double sum = 0, least = 0;
  for (const auto& [name, seconds] : own) {
    const auto found = best.find(name);
    if (!absl::StartsWith(name, "gemm ") || found == best.end()) continue;
    sum += seconds;
    least += found->second;
    check.worst.push_back({name, seconds / found->second - 1});
  }
  check.num_rows = static_cast<int>(check.worst.size());
  if (check.num_rows > 0) {
    check.value = sum / least - 1;
    check.verdict = Judge(check.value, check.limit);
    SortBySize(&check.worst);
    check.worst.resize(std::min(check.worst.size(), kNumWorst));
  }
  checks->push_back(std::move(check));
}

void CheckBandwidth(const CalibrationReports& reports,
                    std::vector<CalibrationCheck>* checks) {
  const auto seconds = SecondsOf(reports.run, true);
  std::vector<JudgedRow> rows;
  for (const ReportRow& row : reports.run) {
    const auto found = seconds.find(row.name);
    if (row.kind != "bandwidth" || found == seconds.end() ||
        found->second < kLeastJudgedSeconds) {
      continue;
    }
    rows.push_back({row.name, std::max(1 - row.measured / row.expected, 0.0)});
  }
  AddMedianAndTail("memory-bound kernels from 20 us vs copies, loss", 0.25, 0.5,
                   rows, checks);
}

void ReportAttention(const CalibrationReports& reports,
                     std::vector<CalibrationCheck>* checks) {
  AddQuantile(
      "attention vs the start profile, median ratio", 0.5, 0,
      Select(reports.run, "attention",
             [](const ReportRow& row) { return row.measured / row.expected; }),
      checks);
  if (checks->back().num_rows > 0) {
    checks->back().verdict = CalibrationCheck::Verdict::kReported;
  }
}

// The passes of a stage are its rows, whose names end with the pass. Stages of
// which a pass is missing are left out.
void CheckStages(const CalibrationReports& reports,
                 std::vector<CalibrationCheck>* checks) {
  struct Sum {
    double expected = 0, measured = 0;
    int num_passes = 0;
  };
  std::map<std::string, Sum> stages;
  for (const ReportRow& row : reports.run) {
    if (row.kind != "stage" && row.kind != "stage_fit") continue;
    Sum& sum = stages[row.name.substr(0, row.name.rfind(' '))];
    sum.expected += row.expected;
    sum.measured += row.measured;
    ++sum.num_passes;
  }
  constexpr int kNumPasses = 3;  // forward and both halves of the backward
  std::vector<JudgedRow> rows;
  for (const auto& [name, sum] : stages) {
    if (sum.num_passes != kNumPasses) continue;
    rows.push_back({name, sum.measured / sum.expected - 1});
  }
  AddMedianAndTail("stages, forward and backward, vs their kernels", 0.03, 0.05,
                   rows, checks);
}

std::string Percent(double value) {
  return absl::StrFormat("%.2f %%", 100 * value);
}

// Values are fractions, except for counts, errors and ratios.
std::string ValueText(const CalibrationCheck& check, double value) {
  if (absl::StrContains(check.name, "failed operations")) {
    return absl::StrFormat("%.0f", value);
  }
  if (absl::StrContains(check.name, "double precision")) {
    return absl::StrFormat("%.2g", value);
  }
  if (absl::EndsWith(check.name, " ratio")) {
    return absl::StrFormat("%.2f", value);
  }
  return Percent(value);
}

}  // namespace

std::vector<CalibrationCheck> JudgeCalibration(
    const CalibrationReports& reports) {
  std::vector<CalibrationCheck> checks;
  CheckOperations(reports, &checks);
  CheckRepeats(reports, &checks);
  CheckGemms(reports, &checks);
  CheckBandwidth(reports, &checks);
  ReportAttention(reports, &checks);
  CheckStages(reports, &checks);
  AddMedianAndTail("memory of a stage vs its buffers", 0.005, 0.01,
                   Select(reports.run, "memory",
                          [](const ReportRow& row) {
                            return row.measured / row.expected - 1;
                          }),
                   &checks);
  return checks;
}

std::string PrintChecks(const std::vector<CalibrationCheck>& checks, bool all) {
  TextTable table;
  table.header = {"check", "rows", "at most", "found", "verdict"};
  table.left = {true, false, false, false, true};
  for (const CalibrationCheck& check : checks) {
    const bool ran = check.verdict != CalibrationCheck::Verdict::kNotRun;
    const bool limited = check.verdict != CalibrationCheck::Verdict::kReported;
    table.rows.push_back({check.name, absl::StrCat(check.num_rows),
                          limited ? ValueText(check, check.limit) : "",
                          ran ? ValueText(check, check.value) : "n/a",
                          NameOf(check.verdict)});
  }
  std::string text = PrintTable(table);
  for (const CalibrationCheck& check : checks) {
    if (check.worst.empty() ||
        !(all || check.verdict == CalibrationCheck::Verdict::kFails)) {
      continue;
    }
    absl::StrAppend(&text, "\nworst rows of: ", check.name, "\n");
    for (const JudgedRow& row : check.worst) {
      absl::StrAppendFormat(&text, "  %10s  %s\n", ValueText(check, row.value),
                            Ascii(row.name));
    }
  }
  return text;
}

std::string PrintChecksCsv(const std::vector<CalibrationCheck>& checks) {
  std::string text = "check,limit,value,rows,verdict\n";
  for (const CalibrationCheck& check : checks) {
    const bool ran = check.verdict != CalibrationCheck::Verdict::kNotRun;
    absl::StrAppend(&text, CsvField(check.name), ",",
                    check.verdict == CalibrationCheck::Verdict::kReported
                        ? ""
                        : absl::StrFormat("%.6g", check.limit),
                    ",", ran ? absl::StrFormat("%.6g", check.value) : "n/a",
                    ",", check.num_rows, ",", NameOf(check.verdict), "\n");
  }
  return text;
}

bool AnyFails(const std::vector<CalibrationCheck>& checks) {
  bool any_ran = false;
  for (const CalibrationCheck& check : checks) {
    if (check.verdict == CalibrationCheck::Verdict::kFails) return true;
    any_ran = any_ran || check.verdict != CalibrationCheck::Verdict::kNotRun;
  }
  return !any_ran;
}

}  // namespace weir::calibrate
