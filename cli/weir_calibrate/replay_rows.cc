// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/replay_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/csv.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/text_table.h"
#include "base/units.h"
#include "base/version.h"
#include "calibrate/execute/pool_sizes.h"
#include "calibrate/gpu/host/partition_size.h"
#include "cli/options/overrides.h"
#include "cli/weir_calibrate/calibrate_flags.h"
#include "plan/replay/scenario_plan.h"

namespace weir::cli {
namespace {

// The context with all modules loaded, library handles and workspaces: assumed.
constexpr double kContextBytes = 2e9;
// Leaves room for the overhead of pools and of the driver.
constexpr double kAvailableShare = 0.97;
constexpr int kSerialRanks = 8;
constexpr char kPartitionsCluster[] = "gpu-partitions";

// The most important rows first, as a lease of a GPU may end.
constexpr const char* kSchedules[] = {
    "1f1b", "pipedream-2bw", "zb-h1", "interleaved-1f1b",
    "zb-v", "pipedream",     "gpipe"};

// What the default scenario is reduced to until its rows fit.
struct Scale {
  const char* model;
  uint32_t sequence_length, global_batch_size;
};
constexpr Scale kScales[] = {{"replay-2.5b", 2048, 16},
                             {"replay-2.5b", 1024, 16},
                             {"replay-2.5b", 1024, 8},
                             {"replay-1b", 1024, 8}};

// The flags of a row, and the same as options.
struct RowFlags {
  ScenarioFlags flags;
  std::vector<std::string> options;

  void Add(absl::string_view option, absl::string_view value) {
    options.push_back(absl::StrCat(option, "=", value));
  }
};

class Planner {
 public:
  explicit Planner(const ReplayRowsRequest& request) : request_(request) {}

  absl::StatusOr<ReplayRows> Plan() {
    if (request_.scenario.scenario == kGpuScenario) {
      given_ = overrides().parallelism();
    } else {
      ASSIGN_OR_RETURN(const ScenarioRequest asked,
                       ApplyOverrides(request_.scenario));
      given_ = asked.scenario.parallelism();
    }
    ReplayRows best;
    for (const Scale& scale : Scales()) {
      ASSIGN_OR_RETURN(ReplayRows rows, RowsOf(scale));
      // Scales become smaller. Where nothing fits, the smallest is closest.
      if (best.num_fitting() == 0 || rows.num_fitting() > best.num_fitting()) {
        best = std::move(rows);
      }
      const bool all = best.num_fitting() == std::ssize(best.rows);
      if (all || !is_scaled()) break;
    }
    return best;
  }

 private:
  const Scenario& overrides() const { return request_.scenario.overrides; }
  bool is_scaled() const {
    return request_.scenario.scenario == kGpuScenario &&
           !(has_model() && overrides().batch().sequence_length() > 0 &&
             has_batch());
  }
  bool has_model() const {
    return !overrides().model().empty() || overrides().has_transformer();
  }
  bool has_batch() const {
    return overrides().batch().global_batch_size() > 0 ||
           overrides().num_microbatches() > 0;
  }
  std::vector<Scale> Scales() const {
    return {std::begin(kScales), std::end(kScales)};
  }
  std::vector<int> Partitions() const {
    if (request_.num_partitions > 0) return {request_.num_partitions};
    // A given pipeline fits only its own number of partitions.
    const int pipeline = static_cast<int>(given_.pipeline());
    if (pipeline > 1) return {1, pipeline};
    return {1, 4, 2, 8};
  }
  std::vector<std::string> Schedules() const {
    if (!request_.scenario.schedules.empty()) {
      return request_.scenario.schedules;
    }
    return {std::begin(kSchedules), std::end(kSchedules)};
  }

  absl::StatusOr<ReplayRows> RowsOf(const Scale& scale) const;
  void Complete(const Scale& scale, int num_partitions,
                const std::string& schedule, RowFlags* row) const;
  int MultiprocessorsOf(int num_partitions) const;
  std::string TooFewMultiprocessors(int num_partitions) const;
  absl::StatusOr<ReplayRow> RowOf(const Scale& scale, int num_partitions,
                                  const std::string& schedule,
                                  ReplayRows* rows) const;

  const ReplayRowsRequest& request_;
  Parallelism given_;  // by the user: kept
};

// Sets what the user left open; options of `row` repeat it.
void Planner::Complete(const Scale& scale, int num_partitions,
                       const std::string& schedule, RowFlags* row) const {
  Scenario& asked = row->flags.overrides;
  if (is_scaled() && !has_model()) {
    asked.set_model(scale.model);
    row->Add("--model", scale.model);
  }
  if (is_scaled() && asked.batch().sequence_length() == 0) {
    asked.mutable_batch()->set_sequence_length(scale.sequence_length);
    row->Add("--seq", absl::StrCat(scale.sequence_length));
  }
  if (is_scaled() && !has_batch()) {
    asked.mutable_batch()->set_global_batch_size(scale.global_batch_size);
    row->Add("--gbs", absl::StrCat(scale.global_batch_size));
  }
  row->flags.schedules = {schedule};
  row->Add("--schedule", schedule);
  if (given_.pipeline() == 0) {
    const int ranks = num_partitions > 1 ? num_partitions : kSerialRanks;
    asked.mutable_parallelism()->set_pipeline(ranks);
    row->Add("--pp", absl::StrCat(ranks));
  }
  if (schedule == "interleaved-1f1b" && given_.chunks() == 0) {
    asked.mutable_parallelism()->set_chunks(2);
    row->Add("--chunks", "2");
  }
  if (num_partitions > 1 && asked.cluster().empty()) {
    asked.set_cluster(kPartitionsCluster);
    row->Add("--cluster", kPartitionsCluster);
  }
}

absl::StatusOr<ReplayRow> Planner::RowOf(const Scale& scale, int num_partitions,
                                         const std::string& schedule,
                                         ReplayRows* rows) const {
  RowFlags row{request_.scenario, request_.scenario_options};
  Complete(scale, num_partitions, schedule, &row);
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario resolved,
                   ResolveFlags(row.flags));
  rows->model = resolved.model.name();
  rows->sequence_length = resolved.scenario.batch().sequence_length();
  rows->global_batch_size = resolved.scenario.batch().global_batch_size();
  plan::ReplaySettings settings;
  settings.on_gpu = true;
  settings.num_partitions = num_partitions > 1 ? num_partitions : 0;
  ASSIGN_OR_RETURN(const calibrate::ExecutionPlan plan,
                   plan::PlanOfScenario(resolved, settings));
  ReplayRow planned;
  planned.num_partitions = num_partitions;
  planned.schedule = schedule;
  planned.num_ranks = plan.schedule.num_ranks;
  planned.num_multiprocessors = MultiprocessorsOf(num_partitions);
  planned.options = std::move(row.options);
  planned.needed_bytes = calibrate::NeededPoolBytes(plan.predicted_peak_bytes);
  planned.available_bytes =
      kAvailableShare *
      std::max(request_.gpu.memory_bytes - kContextBytes, 0.0);
  if (planned.num_multiprocessors == 0) {
    planned.why_not = TooFewMultiprocessors(num_partitions);
  } else if (planned.needed_bytes > planned.available_bytes) {
    planned.why_not = absl::StrFormat(
        "needs %.0f bytes (%s), but %.0f bytes (%s) are available",
        planned.needed_bytes, FormatBytes(planned.needed_bytes),
        planned.available_bytes, FormatBytes(planned.available_bytes));
  }
  return planned;
}

// Returns the number of a partition's multiprocessors; 0: they do not fit.
int Planner::MultiprocessorsOf(int num_partitions) const {
  const int all = request_.gpu.num_multiprocessors;
  return num_partitions > 1 ? calibrate::SizeOfPartitions(all, num_partitions)
                                  .num_multiprocessors
                            : all;
}

std::string Planner::TooFewMultiprocessors(int num_partitions) const {
  const int for_copies = calibrate::MinCopyMultiprocessors(num_partitions);
  return absl::StrFormat(
      "the GPU has %d multiprocessors, expected at least %d: %d partitions of "
      "%d, and %d for messages",
      request_.gpu.num_multiprocessors,
      num_partitions * calibrate::kPartitionStep + for_copies, num_partitions,
      calibrate::kPartitionStep, for_copies);
}

absl::StatusOr<ReplayRows> Planner::RowsOf(const Scale& scale) const {
  ReplayRows rows;
  rows.gpu = request_.gpu;
  for (const int num_partitions : Partitions()) {
    for (const std::string& schedule : Schedules()) {
      ASSIGN_OR_RETURN(rows.rows.emplace_back(),
                       RowOf(scale, num_partitions, schedule, &rows));
    }
  }
  return rows;
}

std::string HowOf(const ReplayRow& row) {
  return row.num_partitions > 1
             ? absl::StrCat(row.num_partitions, " partitions")
             : "serial";
}

}  // namespace

int ReplayRows::num_fitting() const {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(),
                    [](const ReplayRow& row) { return row.fits(); }));
}

absl::StatusOr<ReplayRows> PlanReplays(const ReplayRowsRequest& request) {
  return Planner(request).Plan();
}

std::string ReplayRowsTable(const ReplayRows& rows) {
  TextTable table;
  table.header = {"ranks", "schedule", "GPU", "needed", "available", "fits"};
  table.left = {true, true, true};
  for (const ReplayRow& row : rows.rows) {
    table.rows.push_back(
        {absl::StrCat(row.num_ranks, row.num_partitions > 1 ? "" : " serial"),
         row.schedule,
         row.num_partitions > 1
             ? absl::StrCat(row.num_partitions, " x ", row.num_multiprocessors)
             : absl::StrCat(row.num_multiprocessors),
         FormatBytes(row.needed_bytes), FormatBytes(row.available_bytes),
         row.fits() ? "yes" : "no"});
  }
  std::string text = absl::StrCat(
      "GPU with ", FormatBytes(rows.gpu.memory_bytes), " and ",
      rows.gpu.num_multiprocessors, " multiprocessors: ", rows.model,
      ", sequences of ", rows.sequence_length, " tokens, batches of ",
      rows.global_batch_size, "\n\n", PrintTable(table), "\n",
      rows.num_fitting(), " of ", rows.rows.size(), " replays fit\n");
  for (const ReplayRow& row : rows.rows) {
    if (row.fits()) continue;
    absl::StrAppend(&text, "skipped: ", row.schedule, ", ", HowOf(row), ": ",
                    row.why_not, "\n");
  }
  return text;
}

std::string ReplayRowsCsv(const ReplayRows& rows) {
  std::string text =
      "partitions,schedule,ranks,multiprocessors,model,sequence_length,"
      "needed_bytes,available_bytes,fits,options\n";
  for (const ReplayRow& row : rows.rows) {
    std::string options = absl::StrJoin(row.options, " ");
    // No formula: spreadsheets are not the readers of command lines.
    if (absl::StrContains(options, ',') || absl::StrContains(options, '"')) {
      options = absl::StrCat(
          "\"", absl::StrReplaceAll(options, {{"\"", "\"\""}}), "\"");
    }
    absl::StrAppendFormat(
        &text, "%d,%s,%d,%d,%s,%d,%.0f,%.0f,%s,%s\n", row.num_partitions,
        CsvField(row.schedule), row.num_ranks, row.num_multiprocessors,
        CsvField(rows.model), rows.sequence_length, row.needed_bytes,
        row.available_bytes, row.fits() ? "yes" : "no", options);
  }
  return text;
}

std::string ReplayRowsJson(const std::string& command, const ReplayRows& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ReplayRow& row : rows.rows) {
    nlohmann::ordered_json entry = {
        {"partitions", row.num_partitions},
        {"schedule", row.schedule},
        {"ranks", row.num_ranks},
        {"multiprocessors", row.num_multiprocessors},
        {"needed_bytes", row.needed_bytes},
        {"available_bytes", row.available_bytes},
        {"fits", row.fits()},
        {"options", row.options}};
    if (!row.fits()) entry["reason"] = row.why_not;
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json answer = {
      {"tool", "weir-calibrate"},
      {"version", std::string(WeirVersion())},
      {"command", command},
      {"config",
       {{"memory_bytes", rows.gpu.memory_bytes},
        {"multiprocessors", rows.gpu.num_multiprocessors}}},
      {"result",
       {{"model", rows.model},
        {"sequence_length", rows.sequence_length},
        {"global_batch_size", rows.global_batch_size},
        {"num_fitting", rows.num_fitting()},
        {"rows", std::move(list)}}},
      {"warnings", nlohmann::ordered_json::array()}};
  return DumpJson(answer, 2);
}

}  // namespace weir::cli
