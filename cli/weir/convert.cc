// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/schedule_input.h"
#include "schedules/interop/lower.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/source.h"
#include "schedules/validate.h"

namespace weir::cli {
namespace {

absl::StatusOr<std::string> Converted(const Flags& flags) {
  const ScheduleFlags& asked = flags.schedule;
  if (asked.transfers_only && !asked.lower) {
    Problems problems("command line");
    problems.Add("--transfers-only", "is given without --lower");
    return problems.ToStatus();
  }
  // A file's own transfers are dropped, which also fixes problems with them.
  ASSIGN_OR_RETURN(schedules::Schedule schedule,
                   ScheduleOfFlags(flags, schedules::FileTransfers::kDropped));
  RETURN_IF_ERROR(schedules::ValidateSchedule(schedule));
  if (schedules::OrdersTransfers(flags.name)) {
    PrintWarning(
        absl::StrCat(flags.name, ": the transfers of the file are ignored"),
        flags.output);
  }
  if (!asked.lower) {
    if (asked.merge_backward)
      schedule = schedules::MergeBackwards(std::move(schedule));
    const absl::Status reads = schedules::CheckPyTorchReads(schedule);
    if (!reads.ok()) {
      for (absl::string_view line : absl::StrSplit(reads.message(), '\n')) {
        PrintWarning(absl::StrCat("PyTorch cannot run it: ", line),
                     flags.output);
      }
    }
    return schedules::PrintCsv(schedule);
  }
  // Lowered schedules are for PyTorch.
  RETURN_IF_ERROR(schedules::CheckPyTorchReads(schedule));
  schedules::LoweringOptions options = asked.transfers_only
                                           ? schedules::kTransfersOnly
                                           : schedules::LoweringOptions();
  options.merge_backward = asked.merge_backward;
  ASSIGN_OR_RETURN(const schedules::CommProgram program,
                   schedules::LowerSchedule(schedule, options));
  return schedules::PrintCsv(program);
}

}  // namespace

int RunScheduleConvert(const Flags& flags) {
  const absl::StatusOr<std::string> text = Converted(flags);
  if (!text.ok()) return PrintError(text.status(), flags.output);
  const std::string& path = flags.schedule.output;
  const absl::Status written =
      path.empty() ? PrintResult(*text)
                   : WriteOutput(path, *text, ReplaceOf(flags.output));
  if (!written.ok()) return PrintError(written, flags.output);
  if (!path.empty()) {
    PrintNote(absl::StrCat("wrote ", path), flags.output);
  }
  return kExitOk;
}

}  // namespace weir::cli
