// SPDX-License-Identifier: Apache-2.0
// Copies of sharded weights and gradients between tensors and the buffers of
// collectives.
#ifndef WEIR_SIM_COSTS_SHARD_COPIES_H_
#define WEIR_SIM_COSTS_SHARD_COPIES_H_

#include "calibrate/pricing/kernel_prices.h"
#include "calibrate/profile/device_profile.pb.h"
#include "sim/costs/shard_calls.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {

// Adds the copies of gathered weights out of the buffer of the gather, before a
// forward and a backward pass, and of gradients into that of the reduction.
// Requires: the stage's layers and parameters are set. Measured layers include
// their copies.
void AddShardCopies(const DeviceProfile& device,
                    const calibrate::KernelPrices& prices,
                    const ShardCalls& calls, StageCosts* stage);

// Adds the time in which the host launches the copies of gathers while the GPU
// waits, except for exposed gathers, which run meanwhile.
void AddListSeconds(const ShardCalls& calls, StageCosts* stage);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_SHARD_COPIES_H_
