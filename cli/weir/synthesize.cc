// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/synthesize.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "plan/synthesis/scenario_problem.h"
#include "plan/synthesis/synthesis_view.h"
#include "schedules/interop/schedule_json.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/semantics.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

// Returns the scenario, or else --costs in the shape of the other schedule
// commands.
ScenarioFlags ScenarioOf(const Flags& flags) {
  ScenarioFlags asked = flags.scenario;
  Scenario& shape = asked.overrides;
  // The schedule only determines the stages per rank; this one takes any
  // number.
  if (shape.parallelism().chunks() > 1) asked.schedules = {"breadth-first"};
  if (!asked.scenario.empty()) return asked;
  if (shape.parallelism().pipeline() == 0) {
    shape.mutable_parallelism()->set_pipeline(4);
  }
  if (shape.num_microbatches() == 0 && shape.batch().ByteSizeLong() == 0) {
    shape.set_num_microbatches(8);
  }
  if (shape.model().empty() && !shape.has_transformer() &&
      asked.costs.empty()) {
    asked.costs = "f=1,i=1,w=1";
  }
  if (shape.schedule().empty() && asked.schedules.empty()) {
    shape.set_schedule("1f1b");
  }
  return asked;
}

absl::StatusOr<plan::OrderProblem> ProblemOf(
    const SynthesisFlags& flags, const scenarios::ResolvedScenario& scenario) {
  ASSIGN_OR_RETURN(plan::OrderProblem problem, plan::OrderProblemOf(scenario));
  problem.may_offload = flags.offload;
  problem.objective = static_cast<plan::OrderObjective>(flags.objective);
  const double microbatches =
      flags.memory_limit < 0 ? problem.num_ranks : flags.memory_limit;
  if (microbatches > 0) {
    problem.memory_limit = microbatches * plan::HeldByMicrobatch(problem);
  }
  return problem;
}

bool IsJson(const std::string& path) {
  return absl::EndsWithIgnoreCase(path, ".json");
}

std::string ProofOf(const std::string& path) {
  return absl::StrCat(path, ".proof.json");
}

// PyTorch's CSV cannot contain weir's mark; the proof next to it does.
ReplaceOptions ReplaceOrder(const std::string& path,
                            const OutputFlags& output) {
  ReplaceOptions options = ReplaceOf(output);
  options.companion = ProofOf(path);
  return options;
}

// Called before the search, which may take hours.
absl::Status CheckOut(const SynthesisFlags& flags, const OutputFlags& output) {
  if (flags.offload && !flags.out.empty() && !IsJson(flags.out)) {
    Problems problems("command line");
    problems.Add("--out",
                 absl::StrCat("is ", flags.out,
                              ", expected a .json file: a CSV cannot express "
                              "which actions wait for offloads"));
    return problems.ToStatus();
  }
  if (flags.out.empty()) return absl::OkStatus();
  return weir::CheckOutputs(
      {{"--out", flags.out, ReplaceOrder(flags.out, output)},
       {"the proof of --out", ProofOf(flags.out), ReplaceOf(output)},
       {"--report", output.report, ReplaceOf(output)}});
}

absl::Status Write(const Flags& flags, const plan::OrderProblem& problem,
                   const plan::Synthesis& found,
                   const std::optional<plan::SimulatedTimes>& simulated) {
  const std::string& path = flags.synthesis.out;
  if (path.empty()) return absl::OkStatus();
  std::string text = schedules::PrintCsv(found.schedule);
  if (IsJson(path)) {
    ASSIGN_OR_RETURN(const schedules::Semantics semantics,
                     schedules::InterpretSchedule(found.schedule));
    text = MarkJson(schedules::ScheduleJson(found.schedule, semantics) + "\n");
  }
  RETURN_IF_ERROR(CheckOut(flags.synthesis, flags.output));
  RETURN_IF_ERROR(WriteFile(
      ProofOf(path),
      MarkJson(plan::SynthesisJson(problem, found, simulated) + "\n")));
  return WriteFile(path, text);
}

struct SynthesisOutput {
  plan::OrderProblem problem;
  plan::Synthesis found;
  std::optional<plan::SimulatedTimes> simulated;
  // With --report, the found schedule and the best named one.
  std::vector<Result> runs;
};

absl::Status Confirm(const scenarios::ResolvedScenario& scenario,
                     const OutputFlags& output, SynthesisOutput* answer) {
  sim::SimulateOptions options;
  options.keep_timeline = !output.report.empty();
  const auto simulate =
      [&](const std::string& name,
          const schedules::Schedule& schedule) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(Result result,
                     sim::SimulateSchedule(scenario, schedule, options));
    const double seconds = result.makespan_seconds();
    if (options.keep_timeline) {
      result.set_schedule(name);
      answer->runs.push_back(std::move(result));
    }
    return seconds;
  };
  plan::SimulatedTimes times;
  ASSIGN_OR_RETURN(times.found, simulate("found", answer->found.schedule));
  if (const plan::NamedOrder* best = answer->found.best_named()) {
    ASSIGN_OR_RETURN(times.best_named, simulate(best->name, best->schedule));
  }
  answer->simulated = times;
  return absl::OkStatus();
}

absl::StatusOr<SynthesisOutput> SynthesizeSchedule(const Flags& flags) {
  RETURN_IF_ERROR(CheckOut(flags.synthesis, flags.output));
  RETURN_IF_ERROR(CheckDocumentReport(flags.output));
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario scenario,
                   ResolveFlags(ScenarioOf(flags)));
  SynthesisOutput answer;
  ASSIGN_OR_RETURN(answer.problem, ProblemOf(flags.synthesis, scenario));
  plan::SynthesisOptions options;
  options.method = static_cast<plan::SynthesisMethod>(flags.synthesis.method);
  options.seconds = flags.synthesis.seconds;
  options.num_moves = flags.synthesis.num_moves;
  options.seed = flags.synthesis.seed;
  ProgressLine progress(flags.output);
  if (progress.enabled()) {
    options.progress = [&](const std::string& text, double done) {
      progress.Show(text, done);
    };
  }
  NoteInterrupt();
  ASSIGN_OR_RETURN(answer.found, plan::Synthesize(answer.problem, options));
  if (!Interrupted()) {
    progress.Show("simulating");
    const absl::Status confirmed = Confirm(scenario, flags.output, &answer);
    if (!confirmed.ok() && !absl::IsCancelled(confirmed)) return confirmed;
  }
  ExitOnInterrupt();
  answer.found.interrupted = Interrupted();
  return answer;
}

std::string JsonOf(const Flags& flags, const SynthesisOutput& answer) {
  return Envelope(
      flags.command, "{}",
      plan::SynthesisJson(answer.problem, answer.found, answer.simulated));
}

std::string View(const Flags& flags, const SynthesisOutput& answer) {
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return JsonOf(flags, answer);
    case OutputFlags::Format::kCsv:
      return plan::SynthesisCsv(answer.problem, answer.found, answer.simulated);
    case OutputFlags::Format::kTable:
      break;
  }
  return plan::SynthesisTable(answer.problem, answer.found, answer.simulated);
}

}  // namespace

int RunScheduleSynthesize(const Flags& flags) {
  const absl::StatusOr<SynthesisOutput> answer = SynthesizeSchedule(flags);
  if (!answer.ok()) {
    const ExitCode code = PrintError(answer.status(), flags.output);
    // The request is valid, but the answer is negative.
    return absl::IsFailedPrecondition(answer.status()) ? kExitNegative : code;
  }
  if (answer->found.interrupted) {
    PrintNote("interrupted; showing the best order so far", flags.output);
  }
  for (const std::string& note : answer->found.notes) {
    PrintNote(note, flags.output);
  }
  // The result of hours of search is printed even if it cannot be written.
  absl::Status status = PrintResult(View(flags, *answer));
  status.Update(
      Write(flags, answer->problem, answer->found, answer->simulated));
  status.Update(WriteDocumentReport(
      flags.output, [&] { return JsonOf(flags, *answer); }, answer->runs));
  if (!status.ok()) return PrintError(status, flags.output);
  return answer->found.interrupted ? InterruptExitCode() : kExitOk;
}

}  // namespace weir::cli
