// SPDX-License-Identifier: Apache-2.0
#include "plan/study/study_training.h"

#include <algorithm>
#include <numeric>

#include "base/status_macros.h"
#include "calibrate/execute/execute_schedule.h"
#include "calibrate/execute/host_device.h"

namespace weir::plan {

absl::StatusOr<calibrate::ExecutionPlan> StudyTrainingPlan(
    const StudyRequest& study, const schedules::Schedule& schedule,
    uint64_t seed) {
  calibrate::ExecutionRequest request;
  request.schedule = schedule;
  request.model = study.model;
  request.spec.work.microbatch_size = kStudyMicrobatchSize;
  request.spec.work.sequence_length =
      static_cast<int>(study.model.transformer().default_sequence_length());
  request.spec.format = calibrate::ElementFormat::kFp32;
  request.optimizer.learning_rate =
      study.learning_rate *
      std::min(1.0, 1.0 * schedule.microbatches_per_update(0) /
                        schedule.num_microbatches);
  request.optimizer.momentum = study.momentum;
  request.num_steps = schedule.flush ? study.num_batches : 1;
  request.seed = seed;
  return calibrate::MakeExecutionPlan(request);
}

absl::StatusOr<std::vector<double>> TrainOnHost(
    const calibrate::ExecutionPlan& plan) {
  // One rank after the other, so that the result is the same at any time and on
  // any number of cores.
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

}  // namespace weir::plan
