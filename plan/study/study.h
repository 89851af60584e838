// SPDX-License-Identifier: Apache-2.0
// Training studies: trains a small model under several schedules on the host,
// and simulates the batch times of a scenario under the same schedules.
#ifndef WEIR_PLAN_STUDY_STUDY_H_
#define WEIR_PLAN_STUDY_STUDY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/worker_pool.h"
#include "models/model.pb.h"
#include "results/views/train_study.h"
#include "scenarios/scenario.h"
#include "schedules/schedule.h"

namespace weir::plan {

struct StudyCase {
  scenarios::ResolvedScenario scenario;  // whose batch time is simulated
  // The schedule to train with: one batch, or all of them if there is no flush.
  schedules::Schedule schedule;
};

// Returns the case for the scenario's schedule. Returns InvalidArgument for a
// schedule of inference.
absl::StatusOr<StudyCase> MakeStudyCase(scenarios::ResolvedScenario scenario,
                                        int num_batches);

// Loads the model to train. If there is no name, returns a small preset with as
// many blocks as the stages of every schedule divide. Returns the errors of
// models::LoadModel.
absl::StatusOr<Model> LoadStudyModel(const std::string& name_or_path,
                                     const std::vector<StudyCase>& cases);

struct StudyRequest {
  std::vector<StudyCase> cases;  // for num_batches; at least one
  Model model;                   // to train
  int num_batches = 400;
  int num_seeds = 2;
  double learning_rate = 0.03;
  double momentum = 0.9;
};

// Called with a schedule's name and the completed fraction of its simulation.
using StudySimulationProgress =
    std::function<void(const std::string& schedule, double done)>;

// Simulates every case and returns the study without loss curves. First checks
// that the trainings are possible on this machine: they need minutes. Returns
// InvalidArgument if they are not, and Simulate's errors.
absl::StatusOr<results::TrainStudy> SimulateStudy(
    const StudyRequest& request, const StudySimulationProgress& progress = {});

struct StudyTrainingOptions {
  int num_processes = DefaultProcesses();
  // Called about ten times a second.
  std::function<void(int num_done, int num_trainings)> progress = {};
};

// Trains every case with every seed, each in a worker process, and adds the
// loss curves. The losses do not depend on the number of processes. When
// interrupted, keeps the curves of the trainings that have ended and removes
// the schedules that have none. Requires: `study` is that of SimulateStudy.
// Returns the first error of a training, and Unavailable if no process can be
// created.
absl::Status TrainStudyCases(const StudyRequest& request,
                             const StudyTrainingOptions& options,
                             results::TrainStudy* study);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STUDY_STUDY_H_
