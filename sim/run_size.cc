// SPDX-License-Identifier: Apache-2.0
#include "sim/run_size.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "schedules/source.h"

namespace weir::sim {
namespace {

// Tasks and the edges between them are numbered with 31 bits.
constexpr double kMaxTasks = 3e8;

// Bytes and seconds of one task at the peak of a run, and on one core, rounded
// up.
constexpr double kBytesPerTask = 160;
constexpr double kSecondsPerTask = 2e-6;

// Bytes and seconds of one GPU, for its links and its part of the result.
constexpr double kBytesPerGpu = 12e3;
constexpr double kSecondsPerGpu = 2e-4;

// A pass, its end and its transfer.
constexpr double kTasksPerReducedAction = 3;

absl::Status CheckCounted(const scenarios::ResolvedScenario& scenario,
                          double num_tasks, double num_gpus,
                          absl::string_view counted) {
  constexpr absl::string_view kAdvice =
      "fewer microbatches, batches, stages or data-parallel ranks, or --method "
      "fast";
  RETURN_IF_ERROR(CheckSize(scenario.label, counted,
                            EstimateRun(num_tasks, num_gpus), kAdvice));
  if (num_tasks <= kMaxTasks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: is too large: %s, expected at most %.3g tasks: %s",
                      scenario.label, counted, kMaxTasks, kAdvice));
}

}  // namespace

SizeEstimate EstimateRun(double num_tasks, double num_gpus) {
  return {num_tasks * kBytesPerTask + num_gpus * kBytesPerGpu,
          num_tasks * kSecondsPerTask + num_gpus * kSecondsPerGpu};
}

absl::Status CheckTasks(const scenarios::ResolvedScenario& scenario,
                        double num_tasks, double num_gpus) {
  return CheckCounted(
      scenario, num_tasks, num_gpus,
      absl::StrFormat("%.3g tasks (actions, transfers, collectives)",
                      num_tasks));
}

absl::Status CheckFullRun(const scenarios::ResolvedScenario& scenario,
                          int num_batches) {
  // A file determines its own shape, and has no more actions than can be read.
  if (schedules::IsScheduleFile(scenario.scenario.schedule()))
    return absl::OkStatus();
  const Parallelism& parallelism = scenario.scenario.parallelism();
  const double num_stages =
      static_cast<double>(parallelism.pipeline()) * parallelism.chunks();
  const double num_replicas =
      static_cast<double>(scenario.placement.data) * scenario.placement.tensor;
  const double num_tasks =
      num_stages * scenario.num_microbatches * num_batches * num_replicas;
  return CheckCounted(
      scenario, num_tasks, scenario.placement.num_gpus(),
      absl::StrFormat("%.0f stages x %d microbatches x %d batches on %.0f GPUs "
                      "each, at least %.3g tasks,",
                      num_stages, scenario.num_microbatches, num_batches,
                      num_replicas, num_tasks));
}

absl::Status CheckReducedRun(const scenarios::ResolvedScenario& scenario,
                             const schedules::Schedule& schedule,
                             const Representatives& gpus) {
  double num_actions = 0;
  for (const auto& actions : schedule.rank_actions) {
    num_actions += static_cast<double>(actions.size());
  }
  const scenarios::Placement& place = gpus.placement();
  return CheckTasks(
      scenario,
      kTasksPerReducedAction * num_actions * place.data * place.tensor,
      gpus.full_placement().num_gpus());
}

}  // namespace weir::sim
