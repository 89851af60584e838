// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as an action, as a schedule file in both of PyTorch's
// dialects and formats, and as JSON. Errors are returned as Status; everything
// that parses can be printed and parsed again, linted and lowered.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "schedules/interop/lower.h"
#include "schedules/interop/pytorch_check.h"
#include "schedules/interop/schedule_json.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/lint/lint.h"
#include "schedules/lint/lint_text.h"
#include "schedules/semantics.h"
#include "schedules/timeline.h"
#include "schedules/validate.h"

namespace weir::fuzz {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void FuzzAction(absl::string_view text) {
  absl::StatusOr<schedules::Action> action = schedules::ParseAction(text);
  if (action.ok()) {
    absl::StatusOr<schedules::Action> again =
        schedules::ParseAction(schedules::ToString(*action));
    Require(again.ok() && *again == *action);
  }
  absl::StatusOr<schedules::CommAction> comm = schedules::ParseCommAction(text);
  if (!comm.ok()) return;
  absl::StatusOr<schedules::CommAction> again =
      schedules::ParseCommAction(schedules::ToString(*comm));
  Require(again.ok() && *again == *comm);
}

// Checks that a valid schedule has every view and that its lowering runs.
void FuzzValid(const schedules::Schedule& schedule) {
  schedules::DrawTimeline(schedule);
  absl::StatusOr<schedules::Semantics> semantics =
      schedules::InterpretSchedule(schedule);
  if (semantics.ok()) {
    const std::string json = schedules::ScheduleJson(schedule, *semantics);
    absl::StatusOr<schedules::Schedule> again =
        schedules::ParseScheduleJson("fuzz", json);
    Require(again.ok() && again->rank_actions == schedule.rank_actions);
  }
  for (const bool merge : {false, true}) {
    absl::StatusOr<schedules::CommProgram> program =
        schedules::LowerSchedule(schedule, {.merge_backward = merge});
    Require(program.ok());
    absl::StatusOr<schedules::ScheduleRows> rows =
        schedules::ParseScheduleRows("fuzz", schedules::PrintCsv(*program));
    Require(rows.ok() && rows->program.ranks == program->ranks);
    // All transfers match; the only possible findings concern replicas.
    absl::StatusOr<schedules::LintReport> report =
        schedules::LintRows(*rows, {});
    Require(report.ok());
    for (const schedules::Finding& finding : report->findings) {
      Require(finding.rule != "transfer" && finding.rule != "one-stream" &&
              finding.rule != "gradient" && finding.rule != "sharding");
    }
  }
}

void FuzzSchedule(absl::string_view text, schedules::CsvDialect dialect) {
  absl::StatusOr<schedules::ScheduleRows> rows =
      schedules::ParseScheduleRows("fuzz", text, dialect);
  if (!rows.ok()) return;
  // A file in the old dialect is printed in the current one.
  absl::StatusOr<schedules::ScheduleRows> same =
      schedules::ParseScheduleRows("fuzz", schedules::PrintCsv(rows->program));
  if (dialect == schedules::CsvDialect::kPyTorch) {
    const bool has_empty_row =
        std::any_of(rows->program.ranks.begin(), rows->program.ranks.end(),
                    [](const auto& row) { return row.empty(); });
    Require(has_empty_row ||
            (same.ok() && same->program.ranks == rows->program.ranks));
  }
  absl::StatusOr<schedules::LintReport> report = schedules::LintRows(
      *rows, {.rendezvous = true, .pytorch = true, .megatron = true});
  if (report.ok()) {
    schedules::LintText(*report);
    schedules::LintJson(*report);
    schedules::PyTorchVerdict(*rows);
  }
  absl::StatusOr<schedules::Schedule> schedule =
      schedules::ScheduleFromRows("fuzz", schedules::PassesOf(rows->program));
  if (schedule.ok() && schedules::ValidateSchedule(*schedule).ok())
    FuzzValid(*schedule);
}

void FuzzJson(absl::string_view text) {
  absl::StatusOr<schedules::Schedule> schedule =
      schedules::ParseScheduleJson("fuzz", text);
  if (!schedule.ok() || !schedules::ValidateSchedule(*schedule).ok()) return;
  schedules::LintSchedule(*schedule, {});
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  weir::fuzz::FuzzAction(text);
  weir::fuzz::FuzzSchedule(text, weir::schedules::CsvDialect::kPyTorch);
  weir::fuzz::FuzzSchedule(text, weir::schedules::CsvDialect::kPyTorchLegacy);
  weir::fuzz::FuzzJson(text);
  return 0;
}
