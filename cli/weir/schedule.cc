// SPDX-License-Identifier: Apache-2.0
#include "schedules/schedule.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/text_table.h"
#include "cli/options/messages.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "cli/weir/schedule_input.h"
#include "schedules/interop/schedule_json.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "schedules/semantics_view.h"
#include "schedules/timeline.h"

namespace weir::cli {
namespace {

// Returns a table of each stage's weight versions and staleness.
std::string VersionRows(const schedules::Schedule& schedule,
                        const schedules::Semantics& semantics) {
  std::string text = "stage  rank  weight versions  staleness (updates)\n";
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    absl::StrAppendFormat(&text, "%5d  %4s  %15d  %9d\n", stage,
                          absl::StrJoin(schedule.RanksOf(stage), "+"),
                          semantics.max_live_versions[stage],
                          semantics.max_staleness[stage]);
  }
  return text;
}

std::string Picture(const schedules::Schedule& schedule,
                    const schedules::Semantics& semantics) {
  return absl::StrFormat(
      "%s: %d ranks, %d stages, %d microbatches%s\n%s\n%s\n\n%s", schedule.name,
      schedule.num_ranks, schedule.num_stages, schedule.num_microbatches,
      schedule.flush ? ", flush"
                     : absl::StrCat(" a batch, ", schedule.num_batches,
                                    " batches, no flush"),
      schedules::DrawTimeline(schedule),
      schedules::Verdict(schedule, semantics),
      VersionRows(schedule, semantics));
}

absl::StatusOr<std::string> ShowView(const Flags& flags) {
  ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                   ValidScheduleOfFlags(flags));
  if (flags.output.format == OutputFlags::Format::kCsv) {
    return schedules::PrintCsv(schedule);
  }
  ASSIGN_OR_RETURN(const schedules::Semantics semantics,
                   schedules::InterpretSchedule(schedule));
  return flags.output.format == OutputFlags::Format::kJson
             ? schedules::ScheduleJson(schedule, semantics)
             : Picture(schedule, semantics);
}

absl::StatusOr<std::string> SemanticsView(const Flags& flags) {
  ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                   ValidScheduleOfFlags(flags));
  ASSIGN_OR_RETURN(const schedules::Semantics semantics,
                   schedules::InterpretSchedule(schedule));
  if (flags.output.format != OutputFlags::Format::kJson) {
    return schedules::SemanticsTable(schedule, semantics);
  }
  return ScheduleEnvelope(flags.command, flags.name, schedule,
                          schedules::SemanticsJson(schedule, semantics));
}

int PrintView(const absl::StatusOr<std::string>& view, const Flags& flags) {
  if (!view.ok()) return PrintError(view.status(), flags.output);
  const absl::Status printed = PrintResult(*view);
  return printed.ok() ? kExitOk : PrintError(printed, flags.output);
}

}  // namespace

int RunScheduleShow(const Flags& flags) {
  return PrintView(ShowView(flags), flags);
}

int RunScheduleSemantics(const Flags& flags) {
  return PrintView(SemanticsView(flags), flags);
}

namespace {

std::string KindsJson(absl::string_view command) {
  using Json = nlohmann::ordered_json;
  Json kinds = Json::array();
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    Json aliases = Json::array();
    for (absl::string_view alias : kind.aliases) {
      aliases.push_back(std::string(alias));
    }
    Json options = Json::array();
    for (const schedules::ScheduleOption& option : kind.options) {
      options.push_back({{"name", std::string(option.name)},
                         {"default", std::string(option.standard)},
                         {"summary", std::string(option.summary)}});
    }
    kinds.push_back({{"name", std::string(kind.name)},
                     {"aliases", std::move(aliases)},
                     {"paper", std::string(kind.paper)},
                     {"constraints", std::string(kind.constraints)},
                     {"summary", std::string(kind.summary)},
                     {"options", std::move(options)},
                     {"flush", kind.flush},
                     {"uses_costs", kind.uses_costs}});
  }
  return Envelope(command, "{}",
                  DumpJson(Json{{"schedules", std::move(kinds)}}));
}

std::string KindsText() {
  std::string text;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", kind.name, "\n  ",
                    kind.summary, "\n  needs: ", kind.constraints,
                    "\n  paper: ", kind.paper, "\n");
    for (const schedules::ScheduleOption& option : kind.options) {
      absl::StrAppend(&text, "  option: ", option.name, "=, ", option.summary,
                      " [", option.standard, "]\n");
    }
    if (!kind.aliases.empty()) {
      absl::StrAppend(&text, "  also: ", absl::StrJoin(kind.aliases, ", "),
                      "\n");
    }
  }
  return WrapText(text);
}

}  // namespace

int RunScheduleList(const Flags& flags) {
  return PrintView(flags.output.format == OutputFlags::Format::kJson
                       ? KindsJson(flags.command)
                       : KindsText(),
                   flags);
}

}  // namespace weir::cli
