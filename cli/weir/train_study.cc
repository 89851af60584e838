// SPDX-License-Identifier: Apache-2.0
#include "results/views/train_study.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "base/worker_pool.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "cli/options/picture_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/document_report.h"
#include "cli/weir/envelope.h"
#include "plan/study/study.h"
#include "results/draw/figures.h"

namespace weir::cli {
namespace {

constexpr char kScenario[] = "train-study";

absl::Status CheckStudyOutputs(const Flags& flags) {
  const std::string& plot = flags.study.plot;
  RETURN_IF_ERROR(CheckPicturePath("--plot", plot));
  RETURN_IF_ERROR(CheckDocumentReport(flags.output));
  return weir::CheckOutputs(
      {{"--out", flags.output.out,
        ReplaceOf(flags.output, results::IsTrainStudyHeader)},
       {"--plot", plot, ReplaceOf(flags.output)},
       {"--report", flags.output.report, ReplaceOf(flags.output)}});
}

absl::StatusOr<plan::StudyCase> ReadCase(const Flags& flags,
                                         const ScenarioFlags& asked) {
  ASSIGN_OR_RETURN(scenarios::ResolvedScenario scenario, ResolveFlags(asked));
  return plan::MakeStudyCase(std::move(scenario),
                             static_cast<int>(flags.study.updates));
}

// Returns the case of each schedule; reports the problems of all together.
absl::StatusOr<std::vector<plan::StudyCase>> ReadCases(const Flags& flags) {
  ScenarioFlags asked = flags.scenario;
  const bool by_hand = !asked.costs.empty() || !asked.overrides.model().empty();
  if (asked.scenario.empty() && !by_hand) asked.scenario = kScenario;
  std::vector<std::string> schedules = asked.schedules;
  if (schedules.empty()) schedules = absl::StrSplit(kStudiedSchedules, ',');
  std::vector<plan::StudyCase> cases;
  std::vector<std::string> lines;
  for (const std::string& schedule : schedules) {
    asked.schedules = {schedule};
    absl::StatusOr<plan::StudyCase> read = ReadCase(flags, asked);
    if (read.ok()) {
      cases.push_back(*std::move(read));
    } else {
      lines.emplace_back(read.status().message());
    }
  }
  if (lines.empty()) return cases;
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

absl::StatusOr<plan::StudyRequest> ReadRequest(const Flags& flags) {
  plan::StudyRequest request;
  ASSIGN_OR_RETURN(request.cases, ReadCases(flags));
  ASSIGN_OR_RETURN(request.model, plan::LoadStudyModel(flags.study.train_model,
                                                       request.cases));
  request.num_batches = static_cast<int>(flags.study.updates);
  request.num_seeds = static_cast<int>(flags.study.seeds);
  request.learning_rate = flags.study.learning_rate;
  request.momentum = flags.study.momentum;
  return request;
}

absl::StatusOr<results::TrainStudy> SimulateCases(
    const plan::StudyRequest& request, const OutputFlags& output) {
  ProgressLine progress(output);
  return plan::SimulateStudy(
      request, [&](const std::string& schedule, double done) {
        progress.Show(absl::StrCat("simulating ", schedule), done);
      });
}

absl::Status TrainCases(const Flags& flags, const plan::StudyRequest& request,
                        results::TrainStudy* study) {
  ProgressLine progress(flags.output);
  plan::StudyTrainingOptions options;
  if (flags.num_jobs > 0) {
    options.num_processes = static_cast<int>(flags.num_jobs);
  }
  options.progress = [&](int num_done, int num_trainings) {
    progress.Show(absl::StrCat("[", num_done, "/", num_trainings, "] trained"),
                  1.0 * num_done / num_trainings);
  };
  NoteInterrupt();
  absl::Status trained = plan::TrainStudyCases(request, options, study);
  ExitOnInterrupt();
  return trained;
}

absl::StatusOr<results::TrainStudy> Study(const Flags& flags) {
  RETURN_IF_ERROR(CheckStudyOutputs(flags));
  ASSIGN_OR_RETURN(const plan::StudyRequest request, ReadRequest(flags));
  ASSIGN_OR_RETURN(results::TrainStudy study,
                   SimulateCases(request, flags.output));
  RETURN_IF_ERROR(TrainCases(flags, request, &study));
  return study;
}

std::string JsonOf(const Flags& flags, const results::TrainStudy& study) {
  return Envelope(flags.command, "{}", results::TrainStudyJson(study));
}

std::string View(const Flags& flags, const results::TrainStudy& study) {
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return JsonOf(flags, study);
    case OutputFlags::Format::kCsv:
      return results::TrainStudyCsv(study);
    case OutputFlags::Format::kTable:
      break;
  }
  return results::TrainStudyTable(study);
}

// Draws the smoothed losses over samples and over seconds.
absl::StatusOr<results::Drawing> StudyFigure(const results::TrainStudy& study) {
  results::CurvesPanel by_samples = {"samples (cost of staleness)", "loss", {}};
  results::CurvesPanel by_seconds = {
      "seconds (cost of staleness and bubbles)", "loss", {}};
  for (const results::StudySchedule& schedule : study.schedules) {
    results::Curve samples = {schedule.schedule, {}};
    results::Curve seconds = samples;
    double batches = 0;
    for (const double loss : results::SmoothedLosses(study, schedule)) {
      ++batches;
      samples.points.push_back({batches * study.samples_per_batch, loss});
      seconds.points.push_back({batches * schedule.batch_seconds, loss});
    }
    by_samples.curves.push_back(std::move(samples));
    by_seconds.curves.push_back(std::move(seconds));
  }
  const results::CurvesPanel panels[] = {std::move(by_samples),
                                         std::move(by_seconds)};
  return results::CurvesFigure(
      absl::StrCat(study.train_model,
                   " under several schedules; seconds of a "
                   "batch of ",
                   study.scenario),
      panels, {});
}

absl::Status WriteFiles(const Flags& flags, const results::TrainStudy& study) {
  if (!flags.output.out.empty()) {
    RETURN_IF_ERROR(
        WriteOutput(flags.output.out, results::TrainStudyCsv(study),
                    ReplaceOf(flags.output, results::IsTrainStudyHeader)));
    PrintNote(absl::StrCat("wrote ", flags.output.out), flags.output);
  }
  RETURN_IF_ERROR(
      WriteDocumentReport(flags.output, [&] { return JsonOf(flags, study); }));
  if (flags.study.plot.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const results::Drawing drawing, StudyFigure(study));
  return WritePicture(flags.study.plot, drawing, flags.output);
}

absl::StatusOr<int> TrainStudyCommand(const Flags& flags) {
  ASSIGN_OR_RETURN(const results::TrainStudy study, Study(flags));
  const int code = Interrupted() ? InterruptExitCode() : kExitOk;
  if (study.schedules.empty()) {
    PrintNote("interrupted before any training run finished", flags.output);
    return code;
  }
  RETURN_IF_ERROR(PrintResult(View(flags, study)));
  RETURN_IF_ERROR(WriteFiles(flags, study));
  return code;
}

}  // namespace

int RunTrainStudy(const Flags& flags) {
  const absl::StatusOr<int> code = TrainStudyCommand(flags);
  return code.ok() ? *code : PrintError(code.status(), flags.output);
}

}  // namespace weir::cli
