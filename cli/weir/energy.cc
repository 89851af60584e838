// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/csv.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "base/values.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "plan/energy/frequency_plan.h"
#include "plan/energy/frequency_views.h"
#include "plan/energy/measured_power.h"
#include "results/import/trace_source.h"
#include "schedules/source.h"

namespace weir::cli {
namespace {

absl::StatusOr<std::vector<double>> DeadlinesOfFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const CsvTable table, ReadCsv(path, text));
  const bool short_name = table.HasColumn("time");
  ASSIGN_OR_RETURN(const CsvColumn column,
                   table.Column(short_name ? "time" : "deadline_seconds"));
  return column.Numbers(1e-9, 1e9);
}

absl::StatusOr<std::vector<double>> DeadlinesOf(const std::string& text) {
  if (text.empty()) return std::vector<double>();
  if (absl::EndsWith(text, ".csv")) return DeadlinesOfFile(text);
  std::vector<double> deadlines;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::StatusOr<double> seconds = ParsePositive(part);
    if (!seconds.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("command line: --deadlines ", seconds.status().message(),
                       ", or a .csv file"));
    }
    deadlines.push_back(*seconds);
  }
  return deadlines;
}

absl::StatusOr<schedules::Schedule> ScheduleFor(const EnergyFlags& energy,
                                                int num_stages) {
  schedules::ScheduleSpec spec;
  spec.num_chunks = static_cast<int>(energy.num_chunks);
  spec.num_microbatches = static_cast<int>(energy.num_microbatches);
  if (schedules::IsScheduleFile(energy.schedule)) {
    return schedules::LoadScheduleFile(energy.schedule);
  }
  if (num_stages % spec.num_chunks != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: --chunks is ", spec.num_chunks,
        ", expected a divisor of the profile's ", num_stages, " stages"));
  }
  spec.num_ranks = num_stages / spec.num_chunks;
  // More would exceed the limit of passes.
  if (1.0 * num_stages * spec.num_microbatches > plan::kMaxClockedPasses) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: --microbatches is ", spec.num_microbatches,
        ", expected at most ", plan::kMaxClockedPasses / num_stages, " for ",
        num_stages, " stages"));
  }
  return schedules::GetSchedule(energy.schedule, spec);
}

absl::StatusOr<plan::FrequencyRequest> FrequencyRequestOf(const Flags& flags) {
  const EnergyFlags& energy = flags.energy;
  Problems problems("command line");
  problems.CheckRange("--time-scale", energy.time_scale, 1e-6, 1e6);
  problems.CheckRange("--gpus-per-stage", energy.gpus_per_stage, 1, 1e5);
  RETURN_IF_ERROR(problems.ToStatus());
  plan::FrequencyRequest request;
  ASSIGN_OR_RETURN(const std::string text, results::ReadTextOrGzip(flags.name));
  ASSIGN_OR_RETURN(request.profile,
                   plan::ReadClockProfile(flags.name, text, energy.time_scale,
                                          energy.gpus_per_stage));
  ASSIGN_OR_RETURN(request.schedule,
                   ScheduleFor(energy, request.profile.num_stages));
  request.name = flags.name;
  request.blocking_watts = energy.blocking_watts * energy.gpus_per_stage;
  request.unit_seconds = energy.unit_seconds * energy.time_scale;
  ASSIGN_OR_RETURN(request.deadlines, DeadlinesOf(energy.deadlines));
  request.num_deadlines = static_cast<int>(energy.num_points);
  request.stragglers = energy.stragglers;
  request.most_watts = energy.power_cap * energy.gpus_per_stage;
  return request;
}

absl::StatusOr<plan::FrequencyReport> PlanWithProgress(const Flags& flags) {
  RETURN_IF_ERROR(CheckDocumentReport(flags.output));
  RETURN_IF_ERROR(CheckOutput(flags.output.out,
                              ReplaceOf(flags.output, plan::IsClocksHeader)));
  if (flags.energy.costs.empty() && flags.energy.clock > 0) {
    return absl::InvalidArgumentError(
        "command line: --clock is given without --costs, expected both");
  }
  if (!flags.energy.costs.empty()) {
    RETURN_IF_ERROR(CheckOutput(flags.energy.costs, ReplaceOf(flags.output)));
  }
  ASSIGN_OR_RETURN(const plan::FrequencyRequest request,
                   FrequencyRequestOf(flags));
  ProgressLine line(flags.output);
  return plan::PlanFrequencies(
      request, [&](double done) { line.Show("planning clocks", done); });
}

std::string ClockPlanJson(const Flags& flags,
                          const plan::FrequencyReport& report) {
  return Envelope(flags.command, plan::FrequencyConfigJson(report),
                  plan::FrequencyJson(report), report.request.profile.notes);
}

std::string View(const Flags& flags, const plan::FrequencyReport& report) {
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return ClockPlanJson(flags, report);
    case OutputFlags::Format::kCsv:
      return plan::FrequencyCsv(report);
    case OutputFlags::Format::kTable:
      break;
  }
  return plan::FrequencyTable(report);
}

absl::Status WriteClocks(const Flags& flags,
                         const plan::FrequencyReport& report) {
  if (flags.output.out.empty()) return absl::OkStatus();
  const plan::FrequencyPoint& point =
      report.points.size() == 1 ? report.points.front() : report.fastest;
  RETURN_IF_ERROR(WriteOutput(flags.output.out, plan::ClocksCsv(report, point),
                              ReplaceOf(flags.output, plan::IsClocksHeader)));
  PrintNote(absl::StrCat("wrote ", flags.output.out), flags.output);
  return absl::OkStatus();
}

absl::Status WriteClockCosts(const Flags& flags,
                             const plan::FrequencyReport& report) {
  const std::string& path = flags.energy.costs;
  if (path.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const GivenCosts costs,
      plan::CostsAtClock(report.request.profile, flags.energy.clock));
  RETURN_IF_ERROR(WriteOutput(path, MarkText(PrintTextProto(costs)),
                              ReplaceOf(flags.output)));
  PrintNote(absl::StrCat("wrote ", path, " (weir simulate --costs ", path, ")"),
            flags.output);
  return absl::OkStatus();
}

void WarnOfDeadlines(const Flags& flags, const plan::FrequencyReport& report) {
  const size_t count = report.infeasible_deadlines.size();
  if (count == 0) return;
  PrintWarning(
      absl::StrCat("--deadlines: ", count, " of ", count + report.points.size(),
                   " are shorter than the fastest iteration, ",
                   report.fastest.deadline_seconds, " s, and are left out"),
      flags.output);
}

}  // namespace

int RunEnergy(const Flags& flags) {
  const absl::StatusOr<plan::FrequencyReport> report = PlanWithProgress(flags);
  if (!report.ok()) return PrintError(report.status(), flags.output);
  for (const std::string& note : report->request.profile.notes) {
    PrintWarning(note, flags.output);
  }
  absl::Status done = PrintResult(View(flags, *report));
  done.Update(WriteDocumentReport(
      flags.output, [&] { return ClockPlanJson(flags, *report); }));
  done.Update(WriteClocks(flags, *report));
  done.Update(WriteClockCosts(flags, *report));
  if (!done.ok()) return PrintError(done, flags.output);
  WarnOfDeadlines(flags, *report);
  return kExitOk;
}

}  // namespace weir::cli
