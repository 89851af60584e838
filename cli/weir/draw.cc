// SPDX-License-Identifier: Apache-2.0
// "weir draw": figures of schedules, scenarios, results, sweeps, plans and
// validations.
#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/picture_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/draw_inputs.h"
#include "cli/weir/schedule_input.h"
#include "cli/weir/several_runs.h"
#include "cli/weir/slack.h"
#include "cli/weir/stored_results.h"
#include "results/draw/figures.h"
#include "results/store.h"
#include "results/summary.h"
#include "results/views/features.h"
#include "schedules/registry.h"
#include "schedules/source.h"

namespace weir::cli {
namespace {

using Kind = DrawFlags::Kind;
using results::Drawing;

absl::string_view NameOfKind(Kind kind) {
  switch (kind) {
    case Kind::kTimeline:
      return "timeline";
    case Kind::kMemory:
      return "memory";
    case Kind::kSlack:
      return "slack";
    case Kind::kIdle:
      return "idle";
    case Kind::kPareto:
      return "pareto";
    case Kind::kHeatmap:
      return "heatmap";
    case Kind::kRoofline:
      return "roofline";
    case Kind::kErrors:
      return "errors";
    case Kind::kDefault:
      break;
  }
  return "default";
}

// Returns the kind, or `otherwise` if none was given. Returns InvalidArgument
// if `input` ("a schedule") has no such figure.
absl::StatusOr<Kind> KindOf(const Flags& flags, Kind otherwise,
                            std::span<const Kind> possible,
                            absl::string_view input,
                            absl::string_view hint = "") {
  const Kind kind = flags.draw.kind;
  if (kind == Kind::kDefault) return otherwise;
  if (std::find(possible.begin(), possible.end(), kind) != possible.end()) {
    return kind;
  }
  Problems problems("command line");
  problems.Add("--kind",
               absl::StrCat("is ", NameOfKind(kind), ", but ",
                            EscapeLine(flags.scenario.scenario), " is ", input,
                            ", expected ",
                            absl::StrJoin(possible, " or ",
                                          [](std::string* out, Kind each) {
                                            absl::StrAppend(out,
                                                            NameOfKind(each));
                                          }),
                            hint));
  return problems.ToStatus();
}

results::FigureOptions OptionsOf(const DrawFlags& draw) {
  double points =
      draw.one_column ? results::kOneColumnWidth : results::kTwoColumnsWidth;
  if (draw.width_millimeters > 0) {
    points = draw.width_millimeters * results::kPointsPerMillimeter;
  }
  return {points, draw.title};
}

absl::StatusOr<Drawing> DrawTimelines(const Flags& flags,
                                      const std::vector<Result>& all) {
  std::vector<results::TimelineRows> runs;
  for (const Result& result : all) {
    ASSIGN_OR_RETURN(results::TimelineRows rows,
                     results::RowsOfResult(result, {}, flags.draw.ranks));
    runs.push_back(std::move(rows));
  }
  return results::TimelineFigure(runs, OptionsOf(flags.draw));
}

absl::StatusOr<Drawing> DrawMemory(const Flags& flags,
                                   const std::vector<Result>& all) {
  if (all.size() != 1) {
    std::vector<std::string> names;
    for (const Result& result : all) {
      names.push_back(results::RowName(result));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: --kind memory draws one result, found ",
        absl::StrJoin(names, ", "), ", expected ",
        flags.scenario.schedules.empty() ? "--result" : "--schedule",
        " with one of them"));
  }
  return results::MemoryFigure(all[0], flags.draw.ranks, OptionsOf(flags.draw));
}

absl::StatusOr<Drawing> DrawResults(const Flags& flags, Kind kind,
                                    const std::vector<Result>& all) {
  const results::FigureOptions options = OptionsOf(flags.draw);
  switch (kind) {
    case Kind::kMemory:
      return DrawMemory(flags, all);
    case Kind::kIdle:
      return results::IdleFigure(all, flags.draw.ranks, options);
    case Kind::kPareto: {
      ASSIGN_OR_RETURN(const results::ParetoData data,
                       ParetoOfResults(all, flags.draw.against_cost));
      return results::ParetoFigure(data, options);
    }
    default:
      return DrawTimelines(flags, all);
  }
}

// Simulates the schedules: results have no tasks from which slack is computed.
absl::StatusOr<Drawing> DrawSlack(const Flags& flags,
                                  const std::vector<Job>& jobs) {
  ASSIGN_OR_RETURN(const std::vector<plan::NamedSlack> all,
                   SlackOfJobs(jobs, flags.output));
  std::vector<results::TimelineRows> runs;
  for (const plan::NamedSlack& named : all) {
    ASSIGN_OR_RETURN(results::TimelineRows rows,
                     RowsOfSlack(named, flags.draw.ranks));
    runs.push_back(std::move(rows));
  }
  return results::TimelineFigure(runs, OptionsOf(flags.draw));
}

absl::string_view HintForResult(Kind kind) {
  if (kind == Kind::kRoofline) return "; a roofline needs a scenario";
  if (kind == Kind::kSlack) {
    return "; slack needs a scenario or --costs, such as those of weir import "
           "--costs";
  }
  return "";
}

absl::StatusOr<Drawing> DrawStored(const Flags& flags) {
  constexpr Kind kKinds[] = {Kind::kTimeline, Kind::kMemory, Kind::kIdle,
                             Kind::kPareto};
  ASSIGN_OR_RETURN(const Kind kind,
                   KindOf(flags, Kind::kTimeline, kKinds, "a result",
                          HintForResult(flags.draw.kind)));
  RETURN_IF_ERROR(CheckNoScenarioFlags(flags));
  ASSIGN_OR_RETURN(const std::vector<Result> all,
                   LoadSelected(flags.scenario.scenario, flags.result));
  return DrawResults(flags, kind, all);
}

absl::StatusOr<Drawing> DrawScenario(const Flags& flags) {
  constexpr Kind kKinds[] = {Kind::kTimeline, Kind::kMemory, Kind::kSlack,
                             Kind::kIdle,     Kind::kPareto, Kind::kRoofline};
  ASSIGN_OR_RETURN(const Kind kind,
                   KindOf(flags, Kind::kTimeline, kKinds, "a scenario"));
  const absl::StatusOr<ToSimulate> work = ResolveAll(flags);
  if (absl::IsNotFound(work.status()) && !flags.scenario.scenario.empty() &&
      flags.scenario.schedules.empty()) {
    return absl::NotFoundError(absl::StrCat(
        work.status().message(),
        "; it is no schedule either (weir schedule list names them)"));
  }
  RETURN_IF_ERROR(work.status());
  RETURN_IF_ERROR(work->refused);
  if (kind == Kind::kRoofline) {
    ASSIGN_OR_RETURN(const results::RooflineData data,
                     RooflineOf(work->jobs[0].scenario));
    return results::RooflineFigure(data, OptionsOf(flags.draw));
  }
  if (kind == Kind::kSlack) return DrawSlack(flags, work->jobs);
  Outcome outcome = SimulateAll(work->jobs, flags.flops, flags.output);
  for (const std::string& warning : outcome.warnings) {
    PrintWarning(warning, flags.output);
  }
  if (outcome.results.size() < work->jobs.size()) {
    return absl::CancelledError(
        "nothing is drawn, because not all schedules were simulated");
  }
  return DrawResults(flags, kind, outcome.results);
}

absl::StatusOr<Drawing> DrawSchedule(const Flags& flags) {
  constexpr Kind kKinds[] = {Kind::kTimeline};
  RETURN_IF_ERROR(KindOf(flags, Kind::kTimeline, kKinds, "a schedule",
                         "; --costs f=1,b=2 simulates it, which has more kinds")
                      .status());
  Flags named = flags;
  named.name = flags.scenario.scenario;
  ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                   ValidScheduleOfFlags(named));
  ASSIGN_OR_RETURN(const results::TimelineRows rows,
                   results::RowsOfSchedule(schedule, flags.draw.ranks));
  return results::TimelineFigure({&rows, 1}, OptionsOf(flags.draw));
}

absl::StatusOr<Drawing> DrawSweep(const Flags& flags) {
  constexpr Kind kKinds[] = {Kind::kHeatmap, Kind::kPareto};
  ASSIGN_OR_RETURN(const Kind kind,
                   KindOf(flags, Kind::kHeatmap, kKinds, "a sweep"));
  RETURN_IF_ERROR(CheckNoScenarioFlags(flags));
  if (kind == Kind::kPareto) {
    ASSIGN_OR_RETURN(
        const results::ParetoData data,
        ParetoOfSweep(flags.scenario.scenario, flags.draw.against_cost));
    return results::ParetoFigure(data, OptionsOf(flags.draw));
  }
  ASSIGN_OR_RETURN(const results::HeatmapData data,
                   HeatmapOfSweep(flags.scenario.scenario, flags.draw.fields,
                                  flags.draw.metric));
  return results::HeatmapFigure(data, OptionsOf(flags.draw));
}

absl::StatusOr<Drawing> DrawPlans(const Flags& flags, const std::string& text) {
  constexpr Kind kKinds[] = {Kind::kPareto};
  RETURN_IF_ERROR(
      KindOf(flags, Kind::kPareto, kKinds, "the plans of weir plan").status());
  RETURN_IF_ERROR(CheckNoScenarioFlags(flags));
  ASSIGN_OR_RETURN(
      const results::ParetoData data,
      ParetoOfPlans(flags.scenario.scenario, text, flags.draw.against_cost));
  return results::ParetoFigure(data, OptionsOf(flags.draw));
}

absl::StatusOr<Drawing> DrawErrors(const Flags& flags,
                                   const std::string& text) {
  constexpr Kind kKinds[] = {Kind::kErrors};
  RETURN_IF_ERROR(
      KindOf(flags, Kind::kErrors, kKinds, "a table of weir validate")
          .status());
  RETURN_IF_ERROR(CheckNoScenarioFlags(flags));
  ASSIGN_OR_RETURN(const results::ErrorsData data,
                   ErrorsOfTable(flags.scenario.scenario, text));
  return results::ErrorsFigure(data, OptionsOf(flags.draw));
}

// Returns true if a schedule is drawn with its default costs: nothing is given
// that only a simulation uses.
bool IsOrderOnly(const ScenarioFlags& flags) {
  ScenarioFlags others = flags;
  others.overrides.mutable_parallelism()->clear_pipeline();
  others.overrides.mutable_parallelism()->clear_chunks();
  if (others.overrides.parallelism().ByteSizeLong() == 0) {
    others.overrides.clear_parallelism();
  }
  others.overrides.clear_num_microbatches();
  others.overrides.clear_num_batches();
  return !HasScenarioFlags(others);
}

absl::StatusOr<Drawing> DrawInput(const Flags& flags) {
  const std::string& input = flags.scenario.scenario;
  std::error_code error;
  if (input.empty()) return DrawScenario(flags);
  if (std::filesystem::is_directory(input, error)) return DrawSweep(flags);
  if (absl::EndsWith(input, ".pb") || results::IsResultFile(input)) {
    return DrawStored(flags);
  }
  if (!flags.result.empty()) {
    return absl::InvalidArgumentError(
        "command line: --result needs a file written by --out");
  }
  const bool is_file =
      absl::EndsWith(input, ".json") || absl::EndsWith(input, ".csv");
  if (is_file) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(input));
    if (IsPlans(text)) return DrawPlans(flags, text);
    if (IsErrorTable(text)) return DrawErrors(flags, text);
    RETURN_IF_ERROR(RefuseOutput(input, text));
  }
  if (!schedules::IsScheduleFile(input) &&
      !schedules::FindScheduleKind(input).ok()) {
    return DrawScenario(flags);
  }
  if (absl::StrContains(input, '/') && !is_file) return DrawScenario(flags);
  if (IsOrderOnly(flags.scenario)) return DrawSchedule(flags);
  Flags simulated = flags;
  if (!simulated.scenario.schedules.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("command line: --schedule is given with the schedule ",
                     EscapeLine(input), ", expected only one of them"));
  }
  simulated.scenario.schedules = {input};
  simulated.scenario.scenario.clear();
  return DrawScenario(simulated);
}

}  // namespace

int RunDraw(const Flags& flags) {
  const absl::Status checked = CheckOutputs(flags.output, /*folders=*/false);
  if (!checked.ok()) return PrintError(checked, flags.output);
  const absl::StatusOr<Drawing> drawing = DrawInput(flags);
  if (!drawing.ok()) return PrintError(drawing.status(), flags.output);
  const absl::Status written =
      WritePicture(flags.output.picture, *drawing, flags.output);
  return written.ok() ? kExitOk : PrintError(written, flags.output);
}

}  // namespace weir::cli
