// SPDX-License-Identifier: Apache-2.0
#include "sim/kernel_list.h"

#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/layer_work.h"
#include "sim/costs/stage_costs.h"
#include "sim/prepare.h"

namespace weir::sim {
namespace {

using KernelKey = std::tuple<std::string, double, double, double>;

void AddKernels(const std::vector<PricedKernel>& kernels,
                std::map<KernelKey, double>* counts) {
  for (const PricedKernel& priced : kernels) {
    const models::Kernel& kernel = priced.kernel;
    const double flops =
        kernel.performed_flops > 0 ? kernel.performed_flops : kernel.flops;
    (*counts)[{models::Name(kernel.part), flops, kernel.bytes,
               priced.seconds}] += priced.count;
  }
}

}  // namespace

absl::StatusOr<KernelList> ListKernels(
    const scenarios::ResolvedScenario& scenario) {
  const scenarios::Network network = NetworkOf(scenario);
  ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                   PlannedScheduleOf(scenario, network, /*num_batches=*/1));
  ASSIGN_OR_RETURN(const Costs costs,
                   ComputeCosts(scenario, schedule.num_stages,
                                std::vector<int>(schedule.num_stages, 1)));
  std::map<KernelKey, double> counts;
  for (const StageCosts& stage : costs.stages) {
    if (!stage.kernels.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          scenario.label,
          ": has given or measured seconds of stages, expected a model whose "
          "kernels weir predicts"));
    }
    AddKernels(stage.kernels->forward, &counts);
    AddKernels(stage.kernels->backward_input, &counts);
    AddKernels(stage.kernels->backward_weight, &counts);
  }
  KernelList list;
  list.device = scenario.device.name();
  list.peak_flops.emplace_back(MatrixFormat(scenario.scenario),
                               costs.peak_flops.value_or(0));
  if (costs.recipe_peak_flops > 0 &&
      costs.recipe_peak_flops != costs.peak_flops) {
    list.peak_flops.emplace_back("recipe", costs.recipe_peak_flops);
  }
  list.memory_bytes_per_second =
      scenario.device.memory_bytes_per_second().value();
  for (const auto& [key, count] : counts) {
    const auto& [part, flops, bytes, seconds] = key;
    list.kernels.push_back({part, flops, bytes, seconds, count});
  }
  return list;
}

}  // namespace weir::sim
