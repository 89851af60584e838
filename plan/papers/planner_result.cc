// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/planner_result.h"

#include "plan/papers/planner_result.pb.h"

namespace weir::plan {
namespace {

void PackStatus(const absl::Status& status, PlannerResultWork::Status* packed) {
  packed->set_code(static_cast<int>(status.code()));
  packed->set_message(std::string(status.message()));
}

absl::Status UnpackStatus(const PlannerResultWork::Status& packed) {
  return absl::Status(static_cast<absl::StatusCode>(packed.code()),
                      packed.message());
}

void PackPlan(const PlannedPipeline& plan, PlannerResultWork* packed) {
  packed->set_plan_algorithm(plan.algorithm);
  packed->set_schedule(plan.schedule);
  packed->set_objective_seconds(plan.objective_seconds);
  packed->set_objectives_per_batch(plan.objectives_per_batch);
  packed->set_inference(plan.inference);
  packed->set_num_microbatches(plan.num_microbatches);
  packed->set_microbatch_size(plan.microbatch_size);
  packed->set_chooses_recompute(plan.chooses_recompute);
  for (const PlannedStage& stage : plan.stages) {
    PlannerResultWork::Stage* to = packed->add_stages();
    to->set_first_layer(stage.first_layer);
    to->set_end_layer(stage.end_layer);
    to->mutable_devices()->Assign(stage.devices.begin(), stage.devices.end());
    to->set_recompute(stage.recompute);
    to->set_swap(stage.swap);
  }
  for (const std::string& note : plan.notes) packed->add_notes(note);
}

PlannedPipeline UnpackPlan(const PlannerResultWork& packed) {
  PlannedPipeline plan;
  plan.algorithm = packed.plan_algorithm();
  plan.schedule = packed.schedule();
  plan.objective_seconds = packed.objective_seconds();
  plan.objectives_per_batch = packed.objectives_per_batch();
  plan.inference = packed.inference();
  plan.num_microbatches = packed.num_microbatches();
  plan.microbatch_size = packed.microbatch_size();
  plan.chooses_recompute = packed.chooses_recompute();
  for (const PlannerResultWork::Stage& from : packed.stages()) {
    PlannedStage& stage = plan.stages.emplace_back();
    stage.first_layer = from.first_layer();
    stage.end_layer = from.end_layer();
    stage.devices.assign(from.devices().begin(), from.devices().end());
    stage.recompute = from.recompute();
    stage.swap = from.swap();
  }
  plan.notes.assign(packed.notes().begin(), packed.notes().end());
  return plan;
}

}  // namespace

std::string SerializeResult(const PlannerResult& answer) {
  PlannerResultWork packed;
  packed.set_algorithm(answer.algorithm);
  PackStatus(answer.planned, packed.mutable_planned());
  PackStatus(answer.simulated, packed.mutable_simulated());
  PackPlan(answer.plan, &packed);
  *packed.mutable_scenario() = answer.scenario;
  packed.set_batch_seconds(answer.batch_seconds);
  packed.set_samples_per_second(answer.samples_per_second);
  packed.set_peak_memory_bytes(answer.peak_memory_bytes);
  packed.set_fits_memory(answer.fits_memory);
  packed.set_num_lint_errors(answer.num_lint_errors);
  packed.set_trains(answer.trains);
  return packed.SerializeAsString();
}

absl::StatusOr<PlannerResult> ParseResult(const std::string& bytes) {
  PlannerResultWork packed;
  if (!packed.ParseFromString(bytes)) {
    return absl::InternalError("the result of a planner cannot be read");
  }
  PlannerResult answer;
  answer.algorithm = packed.algorithm();
  answer.planned = UnpackStatus(packed.planned());
  answer.simulated = UnpackStatus(packed.simulated());
  answer.plan = UnpackPlan(packed);
  answer.scenario = packed.scenario();
  answer.batch_seconds = packed.batch_seconds();
  answer.samples_per_second = packed.samples_per_second();
  answer.peak_memory_bytes = packed.peak_memory_bytes();
  answer.fits_memory = packed.fits_memory();
  answer.num_lint_errors = packed.num_lint_errors();
  answer.trains = packed.trains();
  return answer;
}

}  // namespace weir::plan
