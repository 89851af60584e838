// SPDX-License-Identifier: Apache-2.0
#include "sim/fast/fast_inputs.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "schedules/validate.h"
#include "sim/fast/short_batches.h"
#include "sim/prepare.h"

namespace weir::sim {
namespace {

std::string ProgramKey(const scenarios::ResolvedScenario& scenario,
                       int num_batches) {
  const Parallelism& parallelism = scenario.scenario.parallelism();
  return absl::StrCat(
      scenario.scenario.schedule(), "\n", parallelism.pipeline(), " ",
      parallelism.chunks(), " ", scenario.num_microbatches, " ", num_batches,
      " ", scenario.scenario.communication().overlap_expert_exchange());
}

// Fills in what follows from the schedule and its semantics.
void FillFromSemantics(Program* program) {
  program->versions = VersionsOfStages(program->semantics);
  program->traffic = TrafficOf(program->schedule());
}

// Fills in what follows from the schedule.
absl::Status FillProgram(Program* program) {
  ASSIGN_OR_RETURN(program->semantics,
                   schedules::InterpretSchedule(program->schedule()));
  FillFromSemantics(program);
  return absl::OkStatus();
}

// Returns the scenario without the fields that ComputeCosts ignores.
std::string PricesKey(const scenarios::ResolvedScenario& scenario,
                      const Program& program) {
  Scenario asked = scenario.scenario;
  asked.clear_name();
  asked.clear_schedule();
  asked.clear_num_batches();
  asked.clear_num_microbatches();
  asked.mutable_batch()->clear_global_batch_size();
  asked.mutable_communication()->clear_transfers();
  asked.mutable_communication()->clear_gradient_reduction();
  asked.mutable_communication()->clear_compressed_bits_per_element();
  Parallelism* parallelism = asked.mutable_parallelism();
  parallelism->clear_pipeline();
  parallelism->clear_chunks();
  parallelism->clear_order();
  parallelism->clear_gpus();
  std::vector<int> devices;
  for (int gpu : scenario.placement.gpus) {
    if (scenario.other_devices.empty()) break;
    devices.push_back(scenario.gpu_device[gpu]);
  }
  // Their imbalance depends on the shape of the batch (documents.h).
  const bool packed = asked.batch().has_packed_sequences();
  const bool by_replicas = scenario.given_costs || packed ||
                           asked.training().fully_sharded() ||
                           asked.training().distributed_optimizer() ||
                           scenario.runtime.bucket_elements_per_replica() > 0;
  if (!by_replicas) parallelism->clear_data();
  std::string key = absl::StrCat(
      scenario.given_costs, "\n", scenario.placement.num_gpus(), "\n",
      by_replicas ? scenario.placement.data : 0, "\n",
      packed ? scenario.num_microbatches : 0, " ",
      packed ? scenario.placement.pipeline : 0, "\n",
      program.schedule().num_stages, "\n", absl::StrJoin(program.versions, ","),
      "\n", absl::StrJoin(devices, ","), "\n", asked.SerializeAsString());
  if (scenario.given_costs) return key;
  absl::StrAppend(&key, "\n", scenario.model.SerializeAsString(), "\n",
                  scenario.device.SerializeAsString(), "\n",
                  scenario.runtime.SerializeAsString(), "\n",
                  scenario.recipe.SerializeAsString(), "\n",
                  scenario.cluster.plain_links());
  for (const DeviceProfile& device : scenario.other_devices) {
    absl::StrAppend(&key, "\n", device.SerializeAsString());
  }
  return key;
}

// Drops data for uncertainties and breakdowns.
void DropOrigins(DeviceCosts* costs) {
  costs->prices = calibrate::KernelPrices();
  for (StageCosts& stage : costs->stages) stage.kernels.reset();
}

}  // namespace

std::shared_ptr<const scenarios::Network> FastInputs::NetworkOf(
    const scenarios::ResolvedScenario& scenario) {
  const std::string key = NetworkKey(scenario);
  if (auto known = networks_.Find(key)) return known;
  auto network = std::make_shared<const scenarios::Network>(
      weir::sim::NetworkOf(scenario));
  return networks_.Add(key, network->links().size() + network->num_gpus(),
                       network);
}

absl::StatusOr<std::shared_ptr<const schedules::Schedule>>
FastInputs::ScheduleOf(const scenarios::ResolvedScenario& scenario,
                       const scenarios::Network& network, int num_batches) {
  const bool keeps = IsGeneratedFromShape(scenario);
  const std::string key = ProgramKey(scenario, num_batches);
  if (keeps) {
    if (auto known = schedules_.Find(key)) return known;
  }
  ASSIGN_OR_RETURN(schedules::Schedule made,
                   weir::sim::ScheduleOf(scenario, network, num_batches));
  auto schedule = std::make_shared<const schedules::Schedule>(std::move(made));
  if (keeps) return schedules_.Add(key, NumActions(*schedule), schedule);
  RETURN_IF_ERROR(schedules::ValidateSchedule(*schedule));
  return schedule;
}

absl::StatusOr<std::shared_ptr<const Program>> FastInputs::ProgramOf(
    const scenarios::ResolvedScenario& scenario,
    std::shared_ptr<const schedules::Schedule> schedule) {
  const bool keeps = IsGeneratedFromShape(scenario);
  const std::string key = ProgramKey(scenario, schedule->num_batches);
  if (keeps) {
    if (auto known = programs_.Find(key)) return known;
    RETURN_IF_ERROR(schedules::ValidateSchedule(*schedule));
  }
  Program made;
  made.full = std::move(schedule);
  RETURN_IF_ERROR(FillProgram(&made));
  auto program = std::make_shared<const Program>(std::move(made));
  if (!keeps) return program;
  return programs_.Add(key, NumActions(program->schedule()), program);
}

absl::StatusOr<std::shared_ptr<const Program>> FastInputs::ShortProgramOf(
    const scenarios::ResolvedScenario& scenario,
    const schedules::Schedule& full, const ShortenOptions& options) {
  // Both then have one version of every stage, on which costs depend.
  if (!UpdatesOnce(full)) return nullptr;
  const bool keeps = IsGeneratedFromShape(scenario);
  const std::string key =
      absl::StrCat(ProgramKey(scenario, 1), " ", full.total_microbatches(),
                   " short ", options.num_periods_kept, " ", options.multiple);
  if (keeps) {
    if (auto known = programs_.Find(key)) {
      return known->shortened.has_value() ? known : nullptr;
    }
  }
  Program program;
  std::optional<ShortenedSchedule> shortened = ShortenSchedule(full, options);
  // Problems are reported for the whole schedule. Whether the short one
  // completes is found when it runs.
  if (shortened.has_value() &&
      schedules::FindScheduleProblems(shortened->schedule, 1).empty()) {
    program.shortened = std::move(shortened);
    RETURN_IF_ERROR(FillProgram(&program));
  }
  auto made = std::make_shared<const Program>(std::move(program));
  const bool is_short = made->shortened.has_value();
  if (keeps) {
    programs_.Add(key, is_short ? NumActions(made->schedule()) : 1, made);
  }
  return is_short ? made : nullptr;
}

absl::StatusOr<std::shared_ptr<const Program>> FastInputs::ShortBatchesOf(
    const schedules::Schedule& schedule, int num_microbatches_left_out) {
  Program program;
  ASSIGN_OR_RETURN(program.semantics, schedules::InterpretSchedule(schedule));
  program.shortened =
      ShortenBatches(schedule, program.semantics, num_microbatches_left_out);
  if (!program.shortened.has_value()) return nullptr;
  FillFromSemantics(&program);
  return std::make_shared<const Program>(std::move(program));
}

absl::StatusOr<std::shared_ptr<const Prices>> FastInputs::PricesOf(
    const scenarios::ResolvedScenario& scenario, const Program& program) {
  const std::string key = PricesKey(scenario, program);
  if (auto known = prices_.Find(key)) return known;
  auto prices = std::make_shared<Prices>();
  prices->scenario = scenario;
  ASSIGN_OR_RETURN(prices->costs,
                   ComputeCosts(prices->scenario, program.schedule().num_stages,
                                program.versions));
  DropOrigins(&prices->costs);
  for (DeviceCosts& device : prices->costs.other_devices) DropOrigins(&device);
  return prices_.Add(key, program.schedule().num_stages, std::move(prices));
}

std::shared_ptr<const SymmetryResult> FastInputs::SymmetryOf(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network, const Program& program,
    const Costs& costs) {
  return symmetries_.SymmetryOf(scenario, network, program.schedule(),
                                program.traffic, costs);
}

}  // namespace weir::sim
