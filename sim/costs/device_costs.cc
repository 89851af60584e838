// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/device_costs.h"

#include <algorithm>
#include <cstdint>

#include "base/status_macros.h"
#include "calibrate/profile/device_profile.h"
#include "models/layer_work.h"
#include "models/quantization.h"

namespace weir::sim {
namespace {

// Sets the memory and slowdowns of the communication library.
void SetCommunication(const DeviceProfile& device, DeviceCosts* costs) {
  if (device.has_collective_slowdown()) {
    costs->collective_slowdown = device.collective_slowdown().value();
  }
  if (device.has_copy_slowdown()) {
    costs->copy_slowdown = device.copy_slowdown().value();
  }
  costs->communication_buffer_bytes =
      device.communication_buffer_bytes().value();
  if (calibrate::HasMeasuredCommunicators(device)) {
    costs->communicators = &device.collectives();
  }
}

}  // namespace

absl::StatusOr<DeviceCosts> CostsOfDevice(const DeviceProfile& device,
                                          const Runtime& runtime,
                                          const Recipe& recipe,
                                          const Scenario& scenario,
                                          int num_gpus, bool plain_links) {
  DeviceCosts costs;
  ASSIGN_OR_RETURN(costs.peak_flops,
                   calibrate::PeakFlops(device, MatrixFormat(scenario)));
  if (const MatrixRate* rate =
          calibrate::FindRate(device, models::Name(recipe.forward()));
      rate != nullptr) {
    costs.recipe_peak_flops = rate->peak_flops().value();
  }
  costs.prices =
      calibrate::KernelPrices(device, MatrixFormat(scenario), num_gpus);
  costs.kernel_gap_seconds = device.kernel_gap_seconds().value();
  costs.memory_bytes = device.memory_bytes().value();
  costs.reserved_bytes =
      runtime.loads_all_kernels() && device.has_full_context_bytes()
          ? device.full_context_bytes().value()
          : calibrate::ReservedBytes(device);
  if (!plain_links) SetCommunication(device, &costs);
  if (device.has_partition_slowdown())
    costs.partition_slowdown = &device.partition_slowdown();
  return costs;
}

int DispatchMultiprocessors(const Communication& communication) {
  constexpr int kOfDeepEp = 20;    // DeepSeek-V3, section 3.2.2
  constexpr int kOfHybridEp = 16;  // moe_hybridep_num_sms of Megatron Core
  const uint32_t given = communication.dispatch_multiprocessors();
  if (given > 0) return static_cast<int>(given);
  return communication.token_dispatcher() == TOKENS_HYBRID_EP ? kOfHybridEp
                                                              : kOfDeepEp;
}

void SetShards(const scenarios::ResolvedScenario& resolved, Costs* costs) {
  const Scenario& scenario = resolved.scenario;
  const Parallelism& parallelism = scenario.parallelism();
  const int replicas = std::max(resolved.placement.data, 1);
  if (scenario.training().fully_sharded() ||
      scenario.training().distributed_optimizer()) {
    costs->shard_replicas =
        std::max(static_cast<int>(parallelism.data_replicate()), 1);
  }
  const int shards = replicas / costs->shard_replicas;
  if (shards == 1) costs->shard_replicas = 1;  // nothing is sharded
  if (scenario.training().fully_sharded()) costs->shards = shards;
  if (scenario.training().distributed_optimizer()) {
    costs->optimizer_shards = shards;
  }
  costs->expert_parallel = std::max<int>(parallelism.expert(), 1);
  const double processors = resolved.device.num_multiprocessors().value();
  if (models::SendsOneCopyPerGpu(scenario.communication().token_dispatcher()) &&
      processors > 0) {
    costs->exchange_share =
        DispatchMultiprocessors(scenario.communication()) / processors;
  }
  costs->tensor = std::max<int>(parallelism.tensor(), 1);
  if (static_cast<int>(parallelism.expert_tensor()) != costs->tensor) {
    costs->expert_tensor = static_cast<int>(parallelism.expert_tensor());
  }
}

}  // namespace weir::sim
