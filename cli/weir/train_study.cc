// SPDX-License-Identifier: Apache-2.0
#include "results/views/train_study.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/worker_pool.h"
#include "calibrate/execute/execute_schedule.h"
#include "calibrate/execute/host_device.h"
#include "calibrate/execute/host_memory.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "cli/weir/envelope.h"
#include "cli/weir/gnuplot.h"
#include "models/model.h"
#include "results/summary.h"
#include "schedules/source.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

constexpr char kScenario[] = "train-study";
constexpr char kModel[] = "tiny-gpt";
constexpr int kMicrobatchSize = 2;  // sequences, in the training

struct StudyWork {
  scenarios::ResolvedScenario scenario;
  schedules::Schedule schedule;  // all batches, if there is no flush
};

absl::Status CheckStudyOutputs(const Flags& flags) {
  const std::string& plot = flags.study.plot;
  if (!plot.empty() && !absl::EndsWith(plot, ".svg")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "command line: --plot is ", plot, ", expected a name ending in .svg"));
  }
  RETURN_IF_ERROR(weir::CheckOutputs(
      {{"--out", flags.output.out,
        ReplaceOf(flags.output, results::IsTrainStudyHeader)},
       {"--plot", plot, ReplaceOf(flags.output)}}));
  return plot.empty() ? absl::OkStatus() : FindGnuplot();
}

absl::StatusOr<StudyWork> ReadWork(const Flags& flags,
                                   const ScenarioFlags& asked) {
  StudyWork work;
  ASSIGN_OR_RETURN(work.scenario, ResolveFlags(asked));
  ASSIGN_OR_RETURN(const bool flush, schedules::ScheduleFlushes(
                                         work.scenario.scenario.schedule()));
  ASSIGN_OR_RETURN(
      work.schedule,
      sim::ScheduleOfScenario(
          work.scenario, flush ? 1 : static_cast<int>(flags.study.updates)));
  if (work.schedule.forward_only) {
    return absl::InvalidArgumentError(
        absl::StrCat(work.schedule.name,
                     ": is inference, expected a schedule "
                     "that trains"));
  }
  return work;
}

// Returns the work of each schedule; reports the problems of all together.
absl::StatusOr<std::vector<StudyWork>> ReadWork(const Flags& flags) {
  ScenarioFlags asked = flags.scenario;
  const bool by_hand = !asked.costs.empty() || !asked.overrides.model().empty();
  if (asked.scenario.empty() && !by_hand) asked.scenario = kScenario;
  std::vector<std::string> schedules = asked.schedules;
  if (schedules.empty()) {
    schedules = {"gpipe", "zb-h1", "pipedream-2bw", "pipedream", "pipemare"};
  }
  std::vector<StudyWork> works;
  std::vector<std::string> lines;
  for (const std::string& schedule : schedules) {
    asked.schedules = {schedule};
    absl::StatusOr<StudyWork> work = ReadWork(flags, asked);
    if (work.ok()) {
      works.push_back(*std::move(work));
    } else {
      lines.emplace_back(work.status().message());
    }
  }
  if (lines.empty()) return works;
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

// The preset gets a number of blocks that every schedule's stages divide.
absl::StatusOr<Model> ModelOf(const Flags& flags,
                              const std::vector<StudyWork>& works) {
  if (!flags.study.train_model.empty()) {
    return models::LoadModel(flags.study.train_model);
  }
  ASSIGN_OR_RETURN(Model model, models::LoadModel(kModel));
  int stages = 1;
  for (const StudyWork& work : works) {
    stages = std::lcm(stages, work.schedule.num_stages);
  }
  Transformer* transformer = model.mutable_transformer();
  const int blocks = static_cast<int>(transformer->num_layers());
  transformer->set_num_layers((blocks + stages - 1) / stages * stages);
  return model;
}

absl::StatusOr<calibrate::ExecutionPlan> PlanOf(
    const Flags& flags, const Model& model, const schedules::Schedule& schedule,
    uint64_t seed) {
  calibrate::ExecutionRequest request;
  request.schedule = schedule;
  request.model = model;
  request.spec.work.microbatch_size = kMicrobatchSize;
  request.spec.work.sequence_length =
      static_cast<int>(model.transformer().default_sequence_length());
  request.spec.format = calibrate::ElementFormat::kFp32;
  // Updates of fewer samples are proportionally smaller (linear scaling).
  request.optimizer.learning_rate =
      flags.study.learning_rate *
      std::min(1.0, 1.0 * schedule.microbatches_per_update(0) /
                        schedule.num_microbatches);
  request.optimizer.momentum = flags.study.momentum;
  request.num_steps =
      schedule.flush ? static_cast<int>(flags.study.updates) : 1;
  request.seed = seed;
  return calibrate::MakeExecutionPlan(request);
}

// Returns the mean loss of each batch. Trains one rank after the other, so that
// the result is the same at any time and on any number of cores.
absl::StatusOr<std::vector<double>> Train(
    const calibrate::ExecutionPlan& plan) {
  calibrate::HostDeviceOptions options;
  options.concurrent = false;
  const auto device = calibrate::MakeHostDevice(plan, options);
  ASSIGN_OR_RETURN(const calibrate::ExecutionRecord record,
                   calibrate::ExecuteSchedule(plan, device.get()));
  std::vector<double> losses;
  for (const calibrate::StepRecord& step : record.steps) {
    const size_t batch = plan.schedule.num_microbatches;
    for (size_t m = 0; m + batch <= step.losses.size(); m += batch) {
      losses.push_back(std::accumulate(step.losses.begin() + m,
                                       step.losses.begin() + m + batch, 0.0) /
                       static_cast<double>(batch));
    }
  }
  return losses;
}

std::string ToBytes(const std::vector<double>& numbers) {
  std::string bytes(numbers.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<double> FromBytes(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  return numbers;
}

// Trains each schedule with each seed in a separate process. When interrupted,
// keeps those that have ended.
absl::Status TrainAll(const Flags& flags, const Model& model,
                      const std::vector<StudyWork>& works,
                      results::TrainStudy* study) {
  const int num_seeds = static_cast<int>(flags.study.seeds);
  std::vector<std::vector<double>> losses(works.size() * num_seeds);
  absl::Status failed;
  ProgressLine progress(flags.output);
  int num_done = 0;
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(losses.size());
  jobs.num_processes = flags.num_jobs > 0 ? static_cast<int>(flags.num_jobs)
                                          : DefaultProcesses();
  jobs.run = [&](int job) -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const calibrate::ExecutionPlan plan,
                     PlanOf(flags, model, works[job / num_seeds].schedule,
                            job % num_seeds + 1));
    ASSIGN_OR_RETURN(const std::vector<double> trained, Train(plan));
    return ToBytes(trained);
  };
  jobs.done = [&](int job, const absl::StatusOr<std::string>& output) {
    ++num_done;
    if (output.ok()) {
      losses[job] = FromBytes(*output);
    } else if (!absl::IsCancelled(output.status())) {
      failed.Update(output.status());
    }
  };
  jobs.stop = [&] {
    progress.Show(absl::StrCat("[", num_done, "/", losses.size(), "] trained"),
                  1.0 * num_done / static_cast<double>(losses.size()));
    return Interrupted() || !failed.ok();
  };
  RETURN_IF_ERROR(RunJobs(jobs));
  RETURN_IF_ERROR(failed);
  for (size_t i = 0; i < losses.size(); ++i) {
    if (losses[i].empty()) continue;
    study->schedules[i / num_seeds].curves.push_back(
        {i % num_seeds + 1, std::move(losses[i])});
  }
  return absl::OkStatus();
}

absl::StatusOr<results::StudySchedule> Simulated(const StudyWork& work,
                                                 ProgressLine* progress) {
  sim::SimulateOptions options;
  options.progress = [&](double done) {
    progress->Show(absl::StrCat("simulating ", work.schedule.name), done);
  };
  ASSIGN_OR_RETURN(const Result result, sim::Simulate(work.scenario, options));
  results::StudySchedule schedule;
  schedule.schedule = work.schedule.name;
  schedule.semantics = result.semantics();
  schedule.updates_per_batch =
      std::max(1, work.schedule.num_microbatches /
                      work.schedule.microbatches_per_update(0));
  schedule.weight_versions = static_cast<int>(result.weight_versions());
  schedule.staleness_updates = static_cast<int>(result.staleness_updates());
  schedule.batch_seconds = result.batch_seconds();
  schedule.bubble_ratio = result.bubble_ratio();
  schedule.fits_memory = results::FitsMemory(result);
  return schedule;
}

absl::StatusOr<results::TrainStudy> Study(const Flags& flags) {
  RETURN_IF_ERROR(CheckStudyOutputs(flags));
  ASSIGN_OR_RETURN(const std::vector<StudyWork> works, ReadWork(flags));
  ASSIGN_OR_RETURN(const Model model, ModelOf(flags, works));
  results::TrainStudy study;
  const scenarios::ResolvedScenario& first = works.front().scenario;
  study.scenario =
      first.scenario.name().empty() ? first.label : first.scenario.name();
  study.model = first.textbook ? "costs by hand" : first.model.name();
  study.train_model =
      absl::StrCat(model.name(), ", ", model.transformer().num_layers(),
                   " blocks of ", model.transformer().hidden_size());
  study.samples_per_batch = kMicrobatchSize * first.num_microbatches;
  study.num_batches = static_cast<int>(flags.study.updates);
  for (const StudyWork& work : works) {
    // Checks the plan before minutes of training.
    ASSIGN_OR_RETURN(const calibrate::ExecutionPlan plan,
                     PlanOf(flags, model, work.schedule, 1));
    RETURN_IF_ERROR(calibrate::CheckHostMemory(plan));
    RETURN_IF_ERROR(calibrate::CheckHostSize(plan, flags.study.seeds));
  }
  {
    ProgressLine progress(flags.output);
    for (const StudyWork& work : works) {
      ASSIGN_OR_RETURN(study.schedules.emplace_back(),
                       Simulated(work, &progress));
    }
  }
  NoteInterrupt();
  const absl::Status trained = TrainAll(flags, model, works, &study);
  ExitOnInterrupt();
  RETURN_IF_ERROR(trained);
  std::erase_if(study.schedules, [](const results::StudySchedule& s) {
    return s.curves.empty();
  });
  return study;
}

std::string View(const Flags& flags, const results::TrainStudy& study) {
  switch (flags.output.format) {
    case OutputFlags::Format::kJson:
      return Envelope(flags.command, "{}", results::TrainStudyJson(study));
    case OutputFlags::Format::kCsv:
      return results::TrainStudyCsv(study);
    case OutputFlags::Format::kTable:
      break;
  }
  return results::TrainStudyTable(study);
}

absl::Status WriteFiles(const Flags& flags, const results::TrainStudy& study) {
  if (!flags.output.out.empty()) {
    RETURN_IF_ERROR(
        WriteOutput(flags.output.out, results::TrainStudyCsv(study),
                    ReplaceOf(flags.output, results::IsTrainStudyHeader)));
    PrintNote(absl::StrCat("wrote ", flags.output.out), flags.output);
  }
  if (flags.study.plot.empty()) return absl::OkStatus();
  const results::StudyPlot plot = results::TrainStudyPlot(study);
  ASSIGN_OR_RETURN(const std::string svg, DrawSvg(plot.script));
  RETURN_IF_ERROR(WriteOutput(flags.study.plot,
                              MarkSvg(results::WithNames(svg, plot)),
                              ReplaceOf(flags.output)));
  PrintNote(absl::StrCat("wrote ", flags.study.plot), flags.output);
  return absl::OkStatus();
}

absl::StatusOr<int> TrainStudyCommand(const Flags& flags) {
  ASSIGN_OR_RETURN(const results::TrainStudy study, Study(flags));
  const int code = Interrupted() ? InterruptExitCode() : kExitOk;
  if (study.schedules.empty()) {
    PrintNote("interrupted before any training had ended", flags.output);
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
