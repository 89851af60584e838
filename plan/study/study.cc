// SPDX-License-Identifier: Apache-2.0
#include "plan/study/study.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "calibrate/execute/host_memory.h"
#include "models/model.h"
#include "plan/study/study.pb.h"
#include "plan/study/study_training.h"
#include "results/summary.h"
#include "schedules/source.h"
#include "sim/simulate.h"

namespace weir::plan {
namespace {

constexpr char kModel[] = "tiny-gpt";

// Returns an error now rather than after minutes of training.
absl::Status CheckTrainings(const StudyRequest& request) {
  for (const StudyCase& study_case : request.cases) {
    ASSIGN_OR_RETURN(const calibrate::ExecutionPlan plan,
                     StudyTrainingPlan(request, study_case.schedule, 1));
    RETURN_IF_ERROR(calibrate::CheckHostMemory(plan));
    RETURN_IF_ERROR(calibrate::CheckHostSize(plan, request.num_seeds));
  }
  return absl::OkStatus();
}

absl::StatusOr<results::StudySchedule> SimulateCase(
    const StudyCase& study_case, const StudySimulationProgress& progress) {
  sim::SimulateOptions options;
  if (progress) {
    options.progress = [&](double done) {
      progress(study_case.schedule.name, done);
    };
  }
  ASSIGN_OR_RETURN(const Result result,
                   sim::Simulate(study_case.scenario, options));
  results::StudySchedule schedule;
  schedule.schedule = study_case.schedule.name;
  schedule.semantics = result.semantics();
  schedule.updates_per_batch =
      std::max(1, study_case.schedule.num_microbatches /
                      study_case.schedule.microbatches_per_update(0));
  schedule.weight_versions = static_cast<int>(result.weight_versions());
  schedule.staleness_updates = static_cast<int>(result.staleness_updates());
  schedule.batch_seconds = result.batch_seconds();
  schedule.idle_ratio = result.idle_ratio();
  schedule.fits_memory = results::FitsMemory(result);
  return schedule;
}

// Runs in a worker process; returns TrainingLosses.
absl::StatusOr<std::string> Train(const StudyRequest& request,
                                  const StudyCase& study_case, int seed) {
  ASSIGN_OR_RETURN(const calibrate::ExecutionPlan plan,
                   StudyTrainingPlan(request, study_case.schedule, seed));
  ASSIGN_OR_RETURN(const std::vector<double> losses, TrainOnHost(plan));
  TrainingLosses message;
  message.mutable_losses()->Add(losses.begin(), losses.end());
  return message.SerializeAsString();
}

}  // namespace

absl::StatusOr<StudyCase> MakeStudyCase(scenarios::ResolvedScenario scenario,
                                        int num_batches) {
  StudyCase study_case;
  ASSIGN_OR_RETURN(const bool flush,
                   schedules::ScheduleFlushes(scenario.scenario.schedule()));
  ASSIGN_OR_RETURN(study_case.schedule,
                   sim::ScheduleOfScenario(scenario, flush ? 1 : num_batches));
  if (study_case.schedule.forward_only) {
    return absl::InvalidArgumentError(
        absl::StrCat(study_case.schedule.name,
                     ": is forward-only, expected a training schedule"));
  }
  study_case.scenario = std::move(scenario);
  return study_case;
}

absl::StatusOr<Model> LoadStudyModel(const std::string& name_or_path,
                                     const std::vector<StudyCase>& cases) {
  if (!name_or_path.empty()) return models::LoadModel(name_or_path);
  ASSIGN_OR_RETURN(Model model, models::LoadModel(kModel));
  int stages = 1;
  for (const StudyCase& study_case : cases) {
    stages = std::lcm(stages, study_case.schedule.num_stages);
  }
  Transformer* transformer = model.mutable_transformer();
  const int blocks = static_cast<int>(transformer->num_layers());
  transformer->set_num_layers((blocks + stages - 1) / stages * stages);
  return model;
}

absl::StatusOr<results::TrainStudy> SimulateStudy(
    const StudyRequest& request, const StudySimulationProgress& progress) {
  RETURN_IF_ERROR(CheckTrainings(request));
  results::TrainStudy study;
  const scenarios::ResolvedScenario& first = request.cases.front().scenario;
  study.scenario =
      first.scenario.name().empty() ? first.label : first.scenario.name();
  study.model = first.given_costs ? "given costs" : first.model.name();
  study.train_model = absl::StrCat(
      request.model.name(), ", ", request.model.transformer().num_layers(),
      " blocks of ", request.model.transformer().hidden_size());
  study.samples_per_batch = kStudyMicrobatchSize * first.num_microbatches;
  study.num_batches = request.num_batches;
  for (const StudyCase& study_case : request.cases) {
    ASSIGN_OR_RETURN(study.schedules.emplace_back(),
                     SimulateCase(study_case, progress));
  }
  return study;
}

absl::Status TrainStudyCases(const StudyRequest& request,
                             const StudyTrainingOptions& options,
                             results::TrainStudy* study) {
  const int num_seeds = request.num_seeds;
  std::vector<std::vector<double>> losses(request.cases.size() * num_seeds);
  absl::Status failed;
  int num_done = 0;
  Jobs jobs;
  jobs.num_jobs = static_cast<int>(losses.size());
  jobs.num_processes = options.num_processes;
  jobs.run = [&](int job) {
    return Train(request, request.cases[job / num_seeds], job % num_seeds + 1);
  };
  jobs.done = [&](int job, const absl::StatusOr<std::string>& output) {
    ++num_done;
    TrainingLosses trained;
    if (!output.ok()) {
      if (!absl::IsCancelled(output.status())) failed.Update(output.status());
    } else if (trained.ParseFromString(*output)) {
      losses[job].assign(trained.losses().begin(), trained.losses().end());
    } else {
      failed.Update(absl::InternalError("the losses cannot be read"));
    }
  };
  jobs.stop = [&] {
    if (options.progress) options.progress(num_done, jobs.num_jobs);
    return Interrupted() || !failed.ok();
  };
  RETURN_IF_ERROR(RunJobs(jobs));
  RETURN_IF_ERROR(failed);
  for (size_t i = 0; i < losses.size(); ++i) {
    if (losses[i].empty()) continue;
    study->schedules[i / num_seeds].curves.push_back(
        {i % num_seeds + 1, std::move(losses[i])});
  }
  std::erase_if(study->schedules, [](const results::StudySchedule& schedule) {
    return schedule.curves.empty();
  });
  return absl::OkStatus();
}

}  // namespace weir::plan
