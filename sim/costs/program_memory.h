// SPDX-License-Identifier: Apache-2.0
// Memory that a training program takes besides the tensors of the model:
// temporary buffers of the optimizer step, and communicators.
#ifndef WEIR_SIM_COSTS_PROGRAM_MEMORY_H_
#define WEIR_SIM_COSTS_PROGRAM_MEMORY_H_

#include <optional>

#include "calibrate/pricing/collective_seconds.h"
#include "calibrate/profile/runtime.pb.h"
#include "models/layer_list.h"
#include "scenarios/scenario.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {

// Returns the temporary memory of an optimizer step of layers [first, last) on
// one of `num_replicas` replicas, each of which updates the fraction `part` of
// their parameters. Without flat tensors (Runtime.flattens_gradients), these
// are the fp32 copies of 16-bit gradients, which are larger than the tensors of
// passes: Megatron-LM reserves 1.8 to 3.8 GiB more than it allocates at any
// time where these copies take 2.1 to 4.6 GiB (Yeung et al., MLSys 2025,
// artifact/exp_one_host.csv).
// With flat tensors, as DeepSpeed 0.5 and 0.6:
// - sharded states (stage_1_and_2.py, step): a flat copy of the 16-bit
//   gradients of the shard, then its fp32 copy;
// - states not sharded (fp16/fused_optimizer.py, step): an fp32 copy of each
//   gradient, then a flat copy of these;
// - bf16 with fp32 gradients (bf16_optimizer.py, update_hp_grads): an fp32 copy
//   of one gradient at a time; fp32 gradients are flat already;
// - buckets: flat copies of the gradients that are reduced, and of the weights
//   that are gathered.
// The flat fp32 copy is first allocated before any pass, whose tensors then
// share its block; the other buffers are separate. Requires: the parameters of
// the stage are set.
StepBuffers StepBuffersOf(const models::LayerList& layers, int first, int last,
                          const Training& training, const Runtime& runtime,
                          int num_replicas, double part,
                          const StageParameters& parameters);

// Returns the most temporary memory of a step at any time: its buffers, or the
// fp32 copies of its gradients.
double StepBytes(const Costs& costs, const StageCosts& stage);

// Returns true if 16-bit gradients remain besides fp32 ones.
bool KeepsLowPrecisionGradients(const Runtime& runtime,
                                const Training& training);

// Returns what the scenario's runtime states on communicators; absent: nothing.
std::optional<CommunicatorSizes> CommunicatorSizesOf(
    const scenarios::ResolvedScenario& scenario);

// Returns the bytes of a GPU's communicators: those measured on its device, or
// stated by its runtime, or its device's communication_buffer_bytes. Requires:
// `device` is one of `costs`.
double CommunicatorBytes(const Costs& costs, const DeviceCosts& device,
                         const calibrate::CommunicatorCounts& counts,
                         int num_gpus);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_PROGRAM_MEMORY_H_
