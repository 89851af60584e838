// SPDX-License-Identifier: Apache-2.0
// CSV files. Any cells are read as they were written; measured runs keep their
// rows; a measured timeline keeps its events, its causes of idle time and its
// traces; a schedule file gives an error or can be linted.
#include <cmath>

#include "base/csv.h"
#include "results/compare/idle_causes.h"
#include "results/compare/measured_table.h"
#include "results/compare/measured_timeline.h"
#include "results/pipeline_events.h"
#include "results/trace/trace.h"
#include "results/validate.h"
#include "schedules/interop/lower.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/lint/lint.h"
#include "schedules/lint/lint_text.h"
#include "tests/fuzz/generate_table.h"
#include "tests/fuzz/target.h"
#include "tests/sim/random_schedule.h"

namespace weir::fuzz {
namespace {

bool CheckTable(Choices* choices) {
  const GeneratedTable table = GenerateTable(choices);
  const std::string text = table.ToCsv(choices);
  const auto read = ReadCsv("fuzz", text);
  REQUIRE_THAT(read.ok(), StatusText(read) + "\n" + text);
  REQUIRE_THAT(read->header() == table.header, text);
  REQUIRE_THAT(read->num_rows() == std::ssize(table.rows), text);
  for (int i = 0; i < read->num_rows(); ++i) {
    REQUIRE_THAT(read->rows()[i].fields == table.rows[i], text);
  }
  const auto damaged = ReadCsv("fuzz", Damage(text, choices));
  REQUIRE(damaged.ok() || !damaged.status().message().empty());
  return true;
}

bool CheckMeasured(Choices* choices) {
  const MeasuredRuns runs = GenerateMeasuredRuns(choices);
  const std::string text = runs.table.ToCsv(choices);
  const auto read = results::ReadMeasuredTable("fuzz", text, runs.columns);
  if (!read.ok()) {
    REQUIRE(absl::IsInvalidArgument(read.status()));
    return false;
  }
  REQUIRE_THAT(std::ssize(read->rows) + read->num_left_out ==
                   std::ssize(runs.table.rows),
               text);
  for (const results::MeasuredRow& row : read->rows) {
    REQUIRE(row.line >= 2 && !row.fields.empty());
    for (const results::MeasuredField& field : row.fields) {
      REQUIRE_THAT(!field.text.empty(), text);
    }
  }
  return true;
}

bool CheckTimeline(Choices* choices) {
  std::string text = GenerateTimelineCsv(choices);
  if (choices->OneIn(6)) text = Damage(std::move(text), choices);
  const auto result = results::ReadMeasuredTimeline("fuzz", text);
  if (!result.ok()) {
    REQUIRE(absl::IsInvalidArgument(result.status()));
    return false;
  }
  REQUIRE_THAT(results::ValidateResult("fuzz", *result).ok(), text);
  REQUIRE_THAT(result->makespan_seconds() >= 0, text);
  const auto events = results::PipelineEventsOf("fuzz", *result);
  REQUIRE_THAT(events.ok(), text);
  for (const results::RankIdle& idle : results::FindIdleCauses(*events)) {
    REQUIRE_THAT(std::isfinite(idle.idle_seconds()) && idle.busy_seconds >= 0,
                 text);
  }
  results::FindClockErrors(*events);
  if (result->makespan_seconds() < 9e9) {
    REQUIRE_THAT(results::ChromeTrace(*result).ok(), text);
    REQUIRE_THAT(results::PerfettoTrace(*result).ok(), text);
  }
  return true;
}

bool CheckScheduleFile(Choices* choices) {
  const schedules::Schedule schedule = sim::RandomSchedule(choices);
  // A file cannot represent a rank without actions.
  for (const auto& actions : schedule.rank_actions) {
    if (actions.empty()) return false;
  }
  std::string text = schedules::PrintCsv(schedule);
  if (choices->OneIn(2)) {
    const auto program =
        schedules::LowerSchedule(schedule, schedules::kTransfersOnly);
    REQUIRE_THAT(program.ok(), text);
    text = schedules::PrintCsv(*program);
  }
  const bool damaged = choices->OneIn(3);
  if (damaged) text = Damage(std::move(text), choices);
  const auto rows = schedules::ParseScheduleRows("fuzz", text);
  REQUIRE_THAT(rows.ok() || damaged, StatusText(rows) + "\n" + text);
  if (!rows.ok()) return false;
  const auto report = schedules::LintRows(
      *rows, {.rendezvous = true, .pytorch = true, .megatron = true});
  if (!report.ok()) return false;
  REQUIRE(!schedules::LintText(*report).empty());
  schedules::CheckRows(*rows).IgnoreError();
  return true;
}

}  // namespace

bool RunInput(Choices* choices) {
  switch (choices->Int(0, 3)) {
    case 0:
      return CheckTable(choices);
    case 1:
      return CheckMeasured(choices);
    case 2:
      return CheckTimeline(choices);
    default:
      return CheckScheduleFile(choices);
  }
}

}  // namespace weir::fuzz
