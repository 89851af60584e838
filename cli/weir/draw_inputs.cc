// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/draw_inputs.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/weir/file_kind.h"
#include "cli/weir/several_runs.h"
#include "plan/search/plan_points.h"
#include "plan/sweep/collect.h"
#include "plan/sweep/fields.h"
#include "plan/sweep/sweep_views.h"
#include "results/compare/accuracy.h"
#include "results/result_enums.h"
#include "results/summary.h"
#include "sim/kernel_list.h"
#include "sim/report/critical_slack.h"

namespace weir::cli {
namespace {

using results::AxisUnit;

constexpr char kGpuSeconds[] = "GPU seconds per step";

results::ParetoData EmptyPareto(absl::string_view what, bool cost,
                                double largest_bytes) {
  results::ParetoData data;
  data.value_label = cost ? kGpuSeconds : "peak memory";
  data.value_unit = cost ? AxisUnit{1, ""} : results::BytesUnit(largest_bytes);
  data.title = absl::StrCat(what, ": step time and ",
                            cost ? "cost" : "peak memory per GPU");
  return data;
}

// Returns InvalidArgument if no point has a value. Costs are never 0.
absl::Status CheckValues(const results::ParetoData& data) {
  const bool known = std::any_of(
      data.points.begin(), data.points.end(),
      [](const results::ParetoPoint& point) { return point.value > 0; });
  if (known || data.points.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      data.title, ": has no ", data.value_label,
      " to draw, because given costs have none, expected a model or "
      "--against cost"));
}

// Returns the last part of a path, for titles.
std::string FileTitle(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const std::string whole = path.substr(0, end + 1);
  return whole.substr(whole.rfind('/') + 1);
}

std::string LabelOfPoint(const plan::CollectedSweep& collected,
                         uint32_t point) {
  std::vector<std::string> parts;
  for (const auto& [field, value] :
       plan::ShownSettingsOf(collected.sweep, point)) {
    parts.push_back(absl::StrCat(plan::ShortField(field), " ", value));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace

absl::Status CheckNoScenarioFlags(const Flags& flags) {
  if (!HasScenarioFlags(flags.scenario)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "command line: ", EscapeLine(flags.scenario.scenario),
      " holds results, expected no options of a scenario with it"));
}

absl::StatusOr<results::ParetoData> ParetoOfResults(std::span<const Result> all,
                                                    bool cost) {
  double largest = 0;
  for (const Result& result : all) {
    largest = std::max(largest, result.peak_memory_bytes());
  }
  results::ParetoData data = EmptyPareto("schedules", cost, largest);
  for (const Result& result : all) {
    const double seconds = result.batch_seconds();
    data.points.push_back(
        {results::RowName(result), seconds,
         cost ? seconds * static_cast<double>(results::NumGpus(result))
              : result.peak_memory_bytes(),
         results::FitsMemory(result)});
  }
  RETURN_IF_ERROR(CheckValues(data));
  return data;
}

absl::StatusOr<results::ParetoData> ParetoOfSweep(const std::string& folder,
                                                  bool cost) {
  ASSIGN_OR_RETURN(const plan::CollectedSweep collected,
                   plan::CollectShards(folder));
  double largest = 0;
  for (const auto& [point, outcome] : collected.outcomes) {
    largest = std::max(largest, outcome.peak_memory_bytes());
  }
  results::ParetoData data = EmptyPareto(FileTitle(folder), cost, largest);
  for (const auto& [point, outcome] : collected.outcomes) {
    if (outcome.kind() != SWEEP_DONE) continue;
    data.points.push_back({LabelOfPoint(collected, point),
                           outcome.batch_seconds(),
                           cost ? outcome.batch_seconds() * outcome.num_gpus()
                                : outcome.peak_memory_bytes(),
                           outcome.fits_memory()});
  }
  RETURN_IF_ERROR(CheckValues(data));
  return data;
}

bool IsPlans(const std::string& text) { return plan::IsPlanJson(text); }

absl::StatusOr<results::ParetoData> ParetoOfPlans(const std::string& label,
                                                  const std::string& text,
                                                  bool cost) {
  ASSIGN_OR_RETURN(const std::vector<plan::PlanPoint> plans,
                   plan::PlanPointsOfJson(label, text));
  double largest = 0;
  bool priced = cost;
  for (const plan::PlanPoint& plan : plans) {
    largest = std::max(largest, plan.peak_memory_bytes);
    priced = priced && plan.price_per_sample.has_value();
  }
  results::ParetoData data = EmptyPareto("plans", cost, largest);
  // One sample may cost a few millionths.
  if (priced) data.value_label = "price per million samples";
  for (const plan::PlanPoint& plan : plans) {
    const double gpu_seconds = plan.batch_seconds * plan.num_gpus;
    data.points.push_back({plan.label, plan.batch_seconds,
                           priced ? 1e6 * *plan.price_per_sample
                           : cost ? gpu_seconds
                                  : plan.peak_memory_bytes,
                           true});
  }
  return data;
}

absl::StatusOr<results::HeatmapData> HeatmapOfSweep(const std::string& folder,
                                                    const std::string& fields,
                                                    const std::string& metric) {
  ASSIGN_OR_RETURN(const plan::CollectedSweep collected,
                   plan::CollectShards(folder));
  std::string chosen = fields;
  if (chosen.empty()) {
    const std::vector<std::string>& all = collected.sweep.fields;
    if (all.size() < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat(EscapeLine(folder), ": sweeps ", all.size(),
                       all.size() == 1 ? " field" : " fields",
                       ", expected at least two for a heat map"));
    }
    chosen =
        absl::StrCat(plan::ShortField(all[0]), ",", plan::ShortField(all[1]));
  }
  absl::StatusOr<plan::Pivot> pivot =
      plan::PivotOf(collected, "--fields", chosen, metric);
  if (!pivot.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("weir draw: ", pivot.status().message()));
  }
  results::HeatmapData data;
  data.title = absl::StrCat(FileTitle(folder), ": best ", pivot->metric,
                            " of the points that fit");
  data.row_field = pivot->row_field;
  data.column_field = pivot->column_field;
  data.rows = pivot->rows;
  data.columns = pivot->columns;
  data.cells = pivot->cells;
  data.text = pivot->text;
  data.more_is_better = pivot->more_is_better;
  return data;
}

absl::StatusOr<results::RooflineData> RooflineOf(
    const scenarios::ResolvedScenario& scenario) {
  ASSIGN_OR_RETURN(const sim::KernelList list, sim::ListKernels(scenario));
  results::RooflineData data;
  const std::string& name = scenario.scenario.name().empty()
                                ? scenario.scenario.model()
                                : scenario.scenario.name();
  data.title = absl::StrCat(FileTitle(name), name.empty() ? "" : ": ",
                            "kernels on ", list.device);
  for (const auto& [format, rate] : list.peak_flops) {
    data.peaks.push_back({format, rate});
  }
  data.memory_bytes_per_second = list.memory_bytes_per_second;
  for (const sim::ListedKernel& kernel : list.kernels) {
    data.kernels.push_back({kernel.part, kernel.flops, kernel.bytes,
                            kernel.seconds, kernel.count});
  }
  return data;
}

absl::StatusOr<results::TimelineRows> RowsOfSlack(
    const plan::NamedSlack& named, std::span<const uint32_t> ranks) {
  const sim::ScheduleSlack& slack = named.slack;
  const double critical = sim::CriticalSlack(slack.makespan_seconds);
  std::vector<std::vector<results::TimelineBox>> passes;  // [rank]
  int num_passes = 0, num_critical = 0;
  for (const sim::PassSlack& pass : slack.passes) {
    if (pass.replica != 0) continue;
    if (passes.size() <= static_cast<size_t>(pass.rank)) {
      passes.resize(pass.rank + 1);
    }
    results::TimelineBox& box = passes[pass.rank].emplace_back();
    box.op = results::TimelineOpOf(pass.action.op);
    box.stage = pass.action.stage;
    box.microbatch = pass.action.microbatch;
    box.num_microbatches = pass.action.num_microbatches;
    box.start = pass.start_seconds;
    box.end = pass.end_seconds;
    box.slack = pass.slack_seconds <= critical ? 0 : pass.slack_seconds;
    ++num_passes;
    if (box.slack == 0) ++num_critical;
  }
  ASSIGN_OR_RETURN(results::TimelineRows rows,
                   results::RowsOfPasses(named.label, std::move(passes),
                                         slack.makespan_seconds, ranks));
  rows.has_slack = true;
  rows.subtitle =
      absl::StrCat("step time ", FormatSeconds(slack.batch_seconds), ", ",
                   num_critical, " of ", num_passes, " passes are critical");
  std::vector<std::string> notes;
  if (slack.num_batches > 1) {
    notes.push_back(absl::StrCat(named.label, ": slack until the end of ",
                                 slack.num_batches, " batches"));
  }
  if (!slack.is_exact) {
    notes.push_back(absl::StrCat(
        named.label,
        ": transfers share links or slow passes down, so slack assumes that "
        "all other durations remain"));
  }
  rows.note = absl::StrJoin(notes, "; ");
  return rows;
}

absl::Status RefuseOutput(const std::string& label, const std::string& text) {
  const std::string found = DescribeOutput(text);
  if (found.empty()) return absl::OkStatus();
  Problems problems(label);
  problems.Add("", absl::StrCat("is ", found,
                                ", expected a schedule, a scenario, a result "
                                "written by --out, the folder of a sweep, the "
                                "JSON output of weir plan, or the CSV output "
                                "of weir validate"));
  return problems.ToStatus();
}

bool IsErrorTable(const std::string& text) {
  return absl::StartsWith(text, "line,row,quantity,measured,predicted,");
}

absl::StatusOr<results::ErrorsData> ErrorsOfTable(const std::string& label,
                                                  const std::string& text) {
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(label, text));
  ASSIGN_OR_RETURN(const CsvColumn measured, table.Column("measured"));
  ASSIGN_OR_RETURN(const CsvColumn predicted, table.Column("predicted"));
  ASSIGN_OR_RETURN(const CsvColumn quantity, table.Column("quantity"));
  constexpr double kMost = std::numeric_limits<double>::max();
  results::ErrorsData data;
  std::set<std::string> quantities;
  for (int row = 0; row < table.num_rows(); ++row) {
    // A run that is not predicted has no numbers.
    if (predicted.Text(row).empty()) continue;
    ASSIGN_OR_RETURN(const double m, measured.Number(row, 0, kMost));
    ASSIGN_OR_RETURN(const double p, predicted.Number(row, 0, kMost));
    data.values.push_back({m, p});
    quantities.insert(std::string(quantity.Text(row)));
  }
  if (quantities.size() == 1) data.quantity = *quantities.begin();
  // The name of the file without folders and extensions.
  const std::string name = FileTitle(label);
  data.title = absl::StrCat(name.substr(0, name.find('.')), ": errors of ",
                            data.values.size(), " predictions");
  return data;
}

}  // namespace weir::cli
