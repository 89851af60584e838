// SPDX-License-Identifier: Apache-2.0
// What one stage costs one GPU: seconds, bytes on the wire, bytes in memory.
#ifndef WEIR_SIM_STAGE_COSTS_H_
#define WEIR_SIM_STAGE_COSTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/collective_model.pb.h"
#include "calibrate/device_profile.pb.h"
#include "calibrate/kernel_prices.h"
#include "models/layer_work.h"
#include "scenarios/scenario.h"

namespace weir {

// Equal kernels of one pass of one microbatch.
struct PricedKernel {
  Kernel kernel;
  double count = 0;
  double seconds = 0;  // of each
};

// The number format of the scenario's products, as device profiles name it.
const char* MatrixFormat(const Scenario& scenario);

// What a kernel of a pass adds to it beyond its own seconds.
double GapAfter(double kernel_seconds, double gap_seconds);

// What the host launches in a pass.
struct HostWork {
  double forward_launches = 0;   // also of what is recomputed
  double backward_launches = 0;  // by autograd
  double collectives = 0;
  double passes = 0;  // 1: what a pass costs besides

  double Seconds(const Runtime& runtime) const;
};

// One microbatch in one stage, on each GPU of its tensor-parallel group.
struct StageCosts {
  double forward_seconds = 0;
  double backward_seconds = 0;  // B, recomputation included
  // The parts of B; absent (negative) where only the fused B is known.
  double backward_input_seconds = -1;   // I, recomputation included
  double backward_weight_seconds = -1;  // W
  // F beside a B or I that overlaps it; absent (negative): one after the other.
  double overlapped_seconds = -1;
  // One way between device and host, where no PCIe of the cluster carries it;
  // absent (negative): unknown.
  double offload_seconds = 0;
  // Where the schedule asks for it, see ApplySchedule: one estimate of the
  // stage's weights; compressing what it sends on (or undoing it).
  double prediction_seconds = 0;
  double codec_seconds = 0;

  // What the host needs to launch a pass: the pass takes at least that long.
  double forward_host_seconds = 0;
  double backward_input_host_seconds = 0;
  double backward_weight_host_seconds = 0;

  // Where those seconds come from; empty where they were given or measured.
  std::vector<PricedKernel> forward_kernels;
  std::vector<PricedKernel> backward_input_kernels;  // recomputation included
  std::vector<PricedKernel> backward_weight_kernels;
  HostWork forward_host, backward_input_host, backward_weight_host;
  PricedKernel optimizer_kernel;

  // Inside the pass, for one microbatch.
  std::vector<LayerCollective> forward_collectives, backward_collectives;

  double output_bytes = 0;  // sent to the next stage; its gradient is as large

  double optimizer_seconds = 0;      // one step, with update_seconds
  double update_seconds = 0;         // of it, once for all stages of a rank
  double gradient_bytes = 0;         // reduced over the replicas per update
  double expert_gradient_bytes = 0;  // the part of it that experts have

  // Layers that have parameters: sharded weights are gathered one by one.
  int num_parameter_layers = 1;
  // Weights of the first and of the last of these, and the most that two
  // neighbours have; 0: all layers are alike.
  double first_layer_bytes = 0, last_layer_bytes = 0, two_layers_bytes = 0;
  // What a pass needs before it can start; the most while it runs, where
  // layers come and go one by one.
  double first_gathered_bytes(bool forward) const;
  double most_gathered_bytes() const;

  // Memory.
  double weight_bytes = 0;  // the version in use
  double stash_bytes = 0;   // one more version
  double fp32_bytes = 0;    // the parameters in fp32: one estimate buffer
  double optimizer_state_bytes = 0;
  double activation_bytes = 0;             // from F to the end of B (or I)
  double end_activation_bytes = 0;         // of these, outside the blocks
  double layer_activation_bytes = 0;       // of its largest layer
  double recompute_scratch_bytes = 0;      // during B (or I)
  double forward_scratch_bytes = 0;        // during F
  double backward_scratch_bytes = 0;       // during B (or I), besides
  double weight_gradient_stash_bytes = 0;  // from I to the end of W

  double seconds_of(int op) const;  // indexed by Op
  double host_seconds_of(int op) const;
};

// On one kind of GPU. 0 of the others: unknown.
struct DeviceCosts {
  std::vector<StageCosts> stages;
  double peak_flops = 0;
  KernelPrices prices;
  // Of every kernel of a pass besides; below 0 at most the kernel's seconds.
  double kernel_gap_seconds = 0;
  // Of passes while flows move data on the GPU.
  double collective_slowdown = 1, copy_slowdown = 1;
  // It is a part of a card; null: a card of its own.
  const CardShare* card_share = nullptr;
  double memory_bytes = 0;
  double reserved_bytes = 0;
  double communication_buffer_bytes = 0;
  // Whose communicators' memory was measured, which is counted then; else null.
  const CollectiveModel* communicators = nullptr;
};

// Those of the first device, and what all share. Seconds differ between
// devices; bytes do not.
struct Costs : DeviceCosts {
  // Unlike GPUs: the other devices, and which one each GPU (Placement::index)
  // is, 0 being this. Empty where all are alike.
  std::vector<DeviceCosts> other_devices;
  std::vector<int> gpu_device;

  double model_flops = 0;    // one microbatch through all stages, all GPUs
  double forward_flops = 0;  // of these, in forwards
  // Replicas over which weights, gradients and states are shared out.
  int shards = 1;
  int optimizer_shards = 1;  // over which only the states are shared out
  // Of a stage's states and of its step, what each replica has. Of experts
  // there are fewer copies to share out.
  double stepped_part(const StageCosts& stage) const;
  // Replicas that share out the experts of a layer.
  int expert_parallel = 1;
  // What the first and the last stage add up of their gradients, having one
  // embedding twice; 0: they do not.
  double tied_gradient_bytes = 0;
  // Null: collectives are rings at the full rate of the links.
  const CollectiveModel* collectives = nullptr;
  // Has measured sends between some GPUs; null: none.
  const DeviceProfile* links = nullptr;
  double exchange_seconds = 0;  // of every blocking exchange besides
  double bucket_bytes = 0;      // of overlapped reductions
  // The step makes fp32 copies of 16-bit gradients.
  bool widens_gradients = false;
  // Part of the bytes that transfers between ranks have left.
  double compression = 1;

  const DeviceCosts& device_of(int gpu) const {
    const int device = gpu_device.empty() ? 0 : gpu_device[gpu];
    return device == 0 ? *this : other_devices[device - 1];
  }
  const StageCosts& of(int gpu, int stage) const {
    return device_of(gpu).stages[stage];
  }
  // What a GPU sends on for one microbatch, and gets back as its gradient.
  double sent_bytes(int stage) const {
    return stages[stage].output_bytes * compression * sent_part;
  }
  double sent_part = 1;  // below 1: each GPU of a tensor group sends its part
};

// Prices `num_stages` stages: partition, kernels, memory. `num_versions` is the
// most weight versions that each stage holds: more than one makes the optimizer
// step copy weights.
absl::StatusOr<Costs> ComputeCosts(const ResolvedScenario& scenario,
                                   int num_stages,
                                   const std::vector<int>& num_versions);

// The same with every layer by itself, as "stages" of one version, whatever the
// scenario says of its cut: what a planner cuts. Not for textbook costs.
absl::StatusOr<Costs> ComputeLayerCosts(const ResolvedScenario& scenario);

}  // namespace weir

#endif  // WEIR_SIM_STAGE_COSTS_H_
