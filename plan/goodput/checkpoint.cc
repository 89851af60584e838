// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/checkpoint.h"

#include "models/model.h"
#include "models/quantization.h"
#include "models/recipe.h"
#include "sim/costs/stage_parameters.h"

namespace weir::plan {

CheckpointTimes TimesOfCheckpoint(const CheckpointSpec& spec,
                                  const JobSize& job) {
  if (spec.mode == CheckpointMode::kSync) {
    const double seconds = spec.bytes / spec.storage_bytes_per_second;
    return {seconds, seconds, seconds};
  }
  const double copy =
      spec.bytes / job.num_gpus / spec.snapshot_bytes_per_second;
  const double after =
      spec.mode == CheckpointMode::kAsync
          ? spec.bytes / spec.storage_bytes_per_second
          : spec.bytes / job.num_nodes / spec.peer_bytes_per_second;
  return {copy, copy + after, after};
}

absl::StatusOr<double> CheckpointBytes(
    const scenarios::ResolvedScenario& scenario) {
  if (scenario.given_costs) {
    return absl::InvalidArgumentError(
        "command line: --checkpoint-bytes is not given, expected bytes: with "
        "given costs the model is unknown");
  }
  const Training& training = scenario.scenario.training();
  if (training.lora().rank() > 0) {
    return absl::InvalidArgumentError(
        "command line: --checkpoint-bytes is not given, expected bytes: with "
        "low-rank adapters they depend on what the program saves");
  }
  const sim::ParameterBytes bytes = sim::BytesPerParameter(
      training, scenario.recipe,
      models::QuantizationOf(scenario.recipe, /*transposed_copies=*/false));
  const double all = models::CountParameters(scenario.model) +
                     models::CountMtpParameters(scenario.model);
  const double table = models::CountTableParameters(scenario.model);
  return all * bytes.weight + table * bytes.optimizer +
         (all - table) * bytes.matrix_optimizer;
}

}  // namespace weir::plan
