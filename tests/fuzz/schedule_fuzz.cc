// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as an action, as a schedule file in both of PyTorch's
// dialects and formats, and as JSON. Errors are returned as Status; whatever
// parses can be printed and parsed again, linted and lowered.
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

namespace weir {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void FuzzAction(absl::string_view text) {
  absl::StatusOr<Action> action = ParseAction(text);
  if (action.ok()) {
    absl::StatusOr<Action> again = ParseAction(ToString(*action));
    Require(again.ok() && *again == *action);
  }
  absl::StatusOr<CommAction> comm = ParseCommAction(text);
  if (!comm.ok()) return;
  absl::StatusOr<CommAction> again = ParseCommAction(ToString(*comm));
  Require(again.ok() && *again == *comm);
}

// Checks that a valid schedule has every view and that its lowering runs.
void FuzzValid(const Schedule& schedule) {
  DrawTimeline(schedule);
  absl::StatusOr<Semantics> semantics = InterpretSchedule(schedule);
  if (semantics.ok()) {
    const std::string json = ScheduleJson(schedule, *semantics);
    absl::StatusOr<Schedule> again = ParseScheduleJson("fuzz", json);
    Require(again.ok() && again->rank_actions == schedule.rank_actions);
  }
  for (const bool merge : {false, true}) {
    absl::StatusOr<CommProgram> program =
        LowerSchedule(schedule, {.merge_backward = merge});
    Require(program.ok());
    absl::StatusOr<ScheduleRows> rows =
        ParseScheduleRows("fuzz", PrintCsv(*program));
    Require(rows.ok() && rows->program.ranks == program->ranks);
    // All transfers match; the only possible findings concern replicas.
    absl::StatusOr<LintReport> report = LintRows(*rows, {});
    Require(report.ok());
    for (const Finding& finding : report->findings) {
      Require(finding.rule != "transfer" && finding.rule != "one-stream" &&
              finding.rule != "gradient" && finding.rule != "sharding");
    }
  }
}

void FuzzSchedule(absl::string_view text, CsvDialect dialect) {
  absl::StatusOr<ScheduleRows> rows = ParseScheduleRows("fuzz", text, dialect);
  if (!rows.ok()) return;
  // A file in the old dialect is printed in the current one.
  absl::StatusOr<ScheduleRows> same =
      ParseScheduleRows("fuzz", PrintCsv(rows->program));
  if (dialect == CsvDialect::kPyTorch) {
    const bool has_empty_row =
        std::any_of(rows->program.ranks.begin(), rows->program.ranks.end(),
                    [](const auto& row) { return row.empty(); });
    Require(has_empty_row ||
            (same.ok() && same->program.ranks == rows->program.ranks));
  }
  absl::StatusOr<LintReport> report =
      LintRows(*rows, {.rendezvous = true, .pytorch = true, .megatron = true});
  if (report.ok()) {
    LintText(*report);
    LintJson(*report);
    PyTorchVerdict(*rows);
  }
  absl::StatusOr<Schedule> schedule =
      ScheduleFromRows("fuzz", PassesOf(rows->program));
  if (schedule.ok() && ValidateSchedule(*schedule).ok()) FuzzValid(*schedule);
}

void FuzzJson(absl::string_view text) {
  absl::StatusOr<Schedule> schedule = ParseScheduleJson("fuzz", text);
  if (!schedule.ok() || !ValidateSchedule(*schedule).ok()) return;
  LintSchedule(*schedule, {});
}

}  // namespace
}  // namespace weir

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  weir::FuzzAction(text);
  weir::FuzzSchedule(text, weir::CsvDialect::kPyTorch);
  weir::FuzzSchedule(text, weir::CsvDialect::kPyTorchLegacy);
  weir::FuzzJson(text);
  return 0;
}
