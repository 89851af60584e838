// SPDX-License-Identifier: Apache-2.0
// "weir import": a step of a recorded run as a result.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/output_file.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "cli/weir/recorded_input.h"
#include "plan/energy/clock_profile_views.h"
#include "plan/energy/measured_power.h"
#include "plan/stragglers/run_costs.h"
#include "results/import/run_result.h"
#include "results/import/trace_source.h"
#include "results/views/views.h"
#include "scenarios/cut_costs.h"

namespace weir::cli {
namespace {

// Returns the index of --step.
absl::StatusOr<int> StepOf(const Flags& flags,
                           const std::vector<results::RecordedStep>& steps) {
  if (flags.trace.step.empty()) return results::MedianStep(steps);
  constexpr size_t kMaxNamed = 10;
  std::vector<std::string> names;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string name = absl::StrCat(steps[i].step);
    if (name == flags.trace.step) return static_cast<int>(i);
    if (names.size() < kMaxNamed) names.push_back(name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      flags.trace.files[0], ": --step is ", flags.trace.step, ", expected ",
      absl::StrJoin(names, ", "), steps.size() > kMaxNamed ? ", ..." : ""));
}

// Checks --blocks-per-stage for a run of so many stages.
absl::Status CheckBlocks(const std::vector<uint32_t>& blocks, int num_stages) {
  constexpr absl::string_view kFlag = "--blocks-per-stage";
  if (num_stages < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(kFlag,
                     " is given for a run of one stage, expected one of "
                     "at least 2 stages"));
  }
  if (blocks.size() == 1 && blocks[0] == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kFlag, " is 0, expected at least 1"));
  }
  if (blocks.size() != 1 && static_cast<int>(blocks.size()) != num_stages) {
    return absl::InvalidArgumentError(
        absl::StrCat(kFlag, " is ", absl::StrJoin(blocks, ","), ", which are ",
                     blocks.size(), " numbers, expected ", num_stages,
                     ", one for each recorded stage, or one for all"));
  }
  for (size_t i = 1; i + 1 < blocks.size(); ++i) {
    if (blocks[i] > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        kFlag, " is ", absl::StrJoin(blocks, ","), ", which is 0 for stage ", i,
        ", expected at least 1 except for the first and the last stage"));
  }
  return absl::OkStatus();
}

// Adds the numbers of --blocks-per-stage to the costs.
absl::Status SetBlocks(const Flags& flags, GivenCosts* costs) {
  std::vector<uint32_t> blocks = flags.trace.blocks;
  if (blocks.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckBlocks(blocks, costs->stages_size()));
  if (blocks.size() == 1) blocks.assign(costs->stages_size(), blocks[0]);
  costs->mutable_blocks_per_stage()->Assign(blocks.begin(), blocks.end());
  Problems problems(absl::StrCat("--blocks-per-stage ",
                                 absl::StrJoin(flags.trace.blocks, ",")));
  scenarios::CheckCostBlocks(problems, "", *costs);
  return problems.ToStatus();
}

absl::Status WriteCosts(const Flags& flags, const plan::RunCosts& costs) {
  RETURN_IF_ERROR(WriteOutput(flags.trace.costs,
                              MarkText(PrintTextProto(costs.costs)),
                              ReplaceOf(flags.output)));
  std::string note = absl::StrFormat("wrote %s (weir simulate --costs %s)",
                                     flags.trace.costs, flags.trace.costs);
  if (costs.deviation.value_or(0) > 0) {
    absl::StrAppendFormat(&note,
                          "; passes vary as --jitter pass=lognormal:%.3g",
                          *costs.deviation);
  }
  if (!costs.left_out.empty()) absl::StrAppend(&note, "; ", costs.left_out);
  PrintNote(note, flags.output);
  return absl::OkStatus();
}

// Returns the text of the file if it is a profile by clock (Perseus).
absl::StatusOr<std::optional<std::string>> ReadClockText(
    const std::string& path) {
  ASSIGN_OR_RETURN(const auto source, results::TraceSource::Open(path));
  std::optional<std::string> text;
  if (!plan::IsClockProfile(source->Peek())) return text;
  text.emplace();
  while (!source->Peek().empty() &&
         text->size() <= results::TraceSource::kMaxItemBytes) {
    const absl::string_view bytes = source->Peek();
    text->append(bytes.data(), bytes.size());
    std::string taken(bytes.size(), 0);
    source->sgetn(taken.data(), static_cast<std::streamsize>(taken.size()));
    source->EndItem();
  }
  RETURN_IF_ERROR(source->status());
  if (source->cut_off()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": ends early, expected a complete table of passes "
                     "by clock"));
  }
  if (text->size() > results::TraceSource::kMaxItemBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is larger than ", results::TraceSource::kMaxItemBytes,
        " bytes, expected a table of passes by clock"));
  }
  return text;
}

// Shows a profile by clock, which has times of passes but no step.
absl::Status ImportClockProfile(const Flags& flags, absl::string_view text) {
  const std::string& path = flags.trace.files[0];
  for (const auto& [option, given] :
       {std::pair{"--output", !flags.output.out.empty()},
        {"--report", !flags.output.report.empty()},
        {"--step", !flags.trace.step.empty()}}) {
    if (!given) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is a profile of passes by clock, which has no steps, but ",
        option,
        " is given, expected --costs FILE (then weir simulate --costs "
        "FILE -o RESULT)"));
  }
  ASSIGN_OR_RETURN(const plan::ClockProfile profile,
                   plan::ReadClockProfile(path, text));
  ASSIGN_OR_RETURN(GivenCosts costs, plan::CostsAtClock(profile, 0));
  RETURN_IF_ERROR(SetBlocks(flags, &costs));
  const bool is_json = flags.output.format == OutputFlags::Format::kJson;
  RETURN_IF_ERROR(PrintResult(
      is_json ? Envelope(flags.command,
                         DumpJson(nlohmann::ordered_json{
                             {"traces", flags.trace.files}}),
                         plan::ClockProfileJson(profile), profile.notes)
              : plan::ClockProfileTable(profile)));
  for (const std::string& note : profile.notes) {
    PrintWarning(note, flags.output);
  }
  if (flags.trace.costs.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(WriteOutput(flags.trace.costs,
                              MarkText(PrintTextProto(costs)),
                              ReplaceOf(flags.output)));
  PrintNote(
      absl::StrCat("wrote ", flags.trace.costs,
                   ", times at the highest clocks (weir simulate --costs ",
                   flags.trace.costs, ")"),
      flags.output);
  return absl::OkStatus();
}

absl::Status Import(const Flags& flags) {
  if (!flags.output.report.empty()) {
    RETURN_IF_ERROR(CheckReportPath("--report", flags.output.report));
  }
  RETURN_IF_ERROR(weir::CheckOutputs(
      {{"--costs", flags.trace.costs, ReplaceOf(flags.output)},
       {"--output", flags.output.out, ReplaceOf(flags.output)},
       {"--report", flags.output.report, ReplaceOf(flags.output)}}));
  if (!flags.trace.blocks.empty() && flags.trace.costs.empty()) {
    return absl::InvalidArgumentError(
        "--blocks-per-stage is given without --costs FILE, expected both: the "
        "numbers of blocks are written with the costs");
  }
  if (flags.trace.files.size() == 1) {
    ASSIGN_OR_RETURN(const std::optional<std::string> clocks,
                     ReadClockText(flags.trace.files[0]));
    if (clocks.has_value()) return ImportClockProfile(flags, *clocks);
  }
  ASSIGN_OR_RETURN(const results::RecordedRun run, ReadRecordedRun(flags));
  ASSIGN_OR_RETURN(const int step, StepOf(flags, results::StepsOf(run)));
  absl::StatusOr<plan::RunCosts> costs;
  if (!flags.trace.costs.empty()) {
    costs = plan::CostsOfRun(run);
    RETURN_IF_ERROR(costs.status());
    RETURN_IF_ERROR(SetBlocks(flags, &costs->costs));
  }
  Results all;
  Result* result = all.add_results();
  *result = results::ResultOfStep(run, step);
  const bool is_json = flags.output.format == OutputFlags::Format::kJson;
  RETURN_IF_ERROR(PrintResult(
      is_json ? results::ResultJson(flags.command, *result)
              : absl::StrCat(results::ResultTable(*result),
                             run.summary.empty() ? "" : "\n", run.summary)));
  PrintWarnings(all, flags.output);
  absl::Status written = WriteOutputs(flags.output, all, nullptr);
  if (costs.ok()) written.Update(WriteCosts(flags, *costs));
  return written;
}

}  // namespace

int RunImport(const Flags& flags) {
  const absl::Status status = Import(flags);
  return status.ok() ? kExitOk : PrintError(status, flags.output);
}

}  // namespace weir::cli
