// SPDX-License-Identifier: Apache-2.0
// Costs of one stage on one GPU: seconds, communicated bytes, bytes in memory.
#ifndef WEIR_SIM_COSTS_STAGE_COSTS_H_
#define WEIR_SIM_COSTS_STAGE_COSTS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/pricing/kernel_prices.h"
#include "calibrate/profile/collective_model.pb.h"
#include "calibrate/profile/device_profile.pb.h"
#include "models/layer_work.h"
#include "scenarios/scenario.h"
#include "schedules/action.h"
#include "sim/costs/shard_calls.h"

namespace weir::sim {

// Equal kernels of one pass of one microbatch.
struct PricedKernel {
  models::Kernel kernel;
  double count = 0;
  double seconds = 0;  // per kernel
};

// Returns the number format of the scenario's GEMMs, as device profiles name
// it.
const char* MatrixFormat(const Scenario& scenario);

// Returns the seconds that a kernel adds to a pass beyond its own.
double GapAfter(double kernel_seconds, double gap_seconds);

// Launches by the host in a pass.
struct HostWork {
  double forward_launches = 0;   // including recomputation
  double backward_launches = 0;  // by autograd
  double modules = 0;            // calls of modules with linear layers
  double collectives = 0;
  double passes = 0;  // 1: include the fixed cost of a pass

  double Seconds(const Runtime& runtime) const;
};

// The parts of a backward.
struct BackwardParts {
  double input = 0;   // I, recomputation included
  double weight = 0;  // W
};

// Seconds of passes of one microbatch. Absent values are not known.
struct StageSeconds {
  double forward = 0;
  double backward = 0;  // B, recomputation included
  // Absent: only B as a whole is known.
  std::optional<BackwardParts> backward_parts;
  // F overlapped with a B or I; absent: one after the other.
  std::optional<double> overlapped;
  // One way between device and host, if the cluster has no PCIe for it.
  std::optional<double> offload = 0;
  // Nonzero only if the schedule needs them, see ApplySchedule: one estimate of
  // the stage's weights; compressing its output (or decompressing it).
  double prediction = 0;
  double codec = 0;
  // Seconds of attention overlapped with ring messages (context parallelism),
  // in the forward and in the backward.
  double ring_forward = 0, ring_backward = 0;

  // Returns the time of an action; 0 for an offload whose time is not
  // known. Requires: for I and W, backward_parts are known.
  double Of(schedules::Op op) const;
  // Returns the part of it that overlaps with messages of a ring.
  double RingOf(schedules::Op op) const;
};

// What the host does to launch passes.
struct StageLaunches {
  HostWork forward, backward_input, backward_weight;
  // Lower bounds on the durations of the passes.
  double forward_seconds = 0;
  double backward_input_seconds = 0;
  double backward_weight_seconds = 0;

  // Returns the lower bound for an action.
  double SecondsOf(schedules::Op op) const;
};

struct StageKernels {
  std::vector<PricedKernel> forward;
  std::vector<PricedKernel> backward_input;  // recomputation included
  std::vector<PricedKernel> backward_weight;
};

// Communication of one microbatch.
struct StageCommunication {
  // Collectives inside the pass.
  std::vector<models::LayerCollective> forward_collectives,
      backward_collectives;
  double output_bytes = 0;  // sent to the next stage; gradient: same size
};

// Temporary memory of one optimizer step, of its reduction and its gather.
struct StepBuffers {
  double bytes = 0;  // most at any time
  // Allocated in blocks that do not fit the tensors of passes, so that an
  // allocator that caches freed blocks holds them in addition.
  double separate_bytes = 0;
};

// One optimizer step.
struct StageStep {
  double seconds = 0;         // including those below
  double update_seconds = 0;  // once for all stages of a rank
  // Of an offloaded optimizer: copies, and the step on the host.
  double copy_seconds = 0, host_seconds = 0;
  double orthogonalization_seconds = 0;  // of Muon's updates
  std::optional<PricedKernel> kernel;    // absent if the seconds were given
  StepBuffers buffers;
};

// Weights of layers with parameters.
struct LayerBytes {
  double first = 0, last = 0;
  double two = 0;  // largest sum of two neighbors
  // The parts of first and last that belong to experts.
  double first_experts = 0, last_experts = 0;
};

// Bytes of everything that a stage keeps per parameter.
struct StageParameters {
  double weight_bytes = 0;  // the version in use
  double stash_bytes = 0;   // each additional version
  double fp32_bytes = 0;    // in fp32: one estimate buffer
  double optimizer_state_bytes = 0;
  // Copies of the weights in the formats of GEMMs, besides weight_bytes.
  double weight_copy_bytes = 0;
  // Gathered after a sharded optimizer step, or before a pass. Absent:
  // weight_bytes.
  std::optional<double> gather_bytes;
  double gathered_bytes() const { return gather_bytes.value_or(weight_bytes); }
  // The part of the weights that an optimizer step writes. Absent: all.
  std::optional<double> trained_bytes;
  double written_bytes() const { return trained_bytes.value_or(weight_bytes); }
  double cast_bytes = 0;  // moved by casts of weights after a step
  // 16-bit gradients that remain besides accumulated ones.
  double kept_gradient_bytes = 0;
  double gradient_bytes = 0;         // reduced over the replicas per update
  double expert_gradient_bytes = 0;  // part of it that belongs to experts
  // Part of gathered_bytes() that belongs to experts, if weights are sharded.
  double gathered_expert_bytes = 0;
  // Number of layers with parameters: sharded weights are gathered one by one.
  int num_layers = 1;
  std::optional<LayerBytes> layers;  // absent: all layers are alike

  // Return the gathered bytes that a pass needs before it can start, those of
  // experts, and the most while it runs if layers are gathered and freed one by
  // one.
  double first_gathered_bytes(bool forward) const;
  double first_gathered_expert_bytes(bool forward) const;
  double most_gathered_bytes() const;
};

// Bytes of the activations of one microbatch.
struct StageActivations {
  double saved_bytes = 0;                  // from F to the end of B (or I)
  double end_bytes = 0;                    // part of it, outside the blocks
  double layer_bytes = 0;                  // its largest layer
  double recompute_scratch_bytes = 0;      // during B (or I)
  double forward_scratch_bytes = 0;        // during F
  double backward_scratch_bytes = 0;       // during B (or I), in addition
  double weight_gradient_stash_bytes = 0;  // from I to the end of W
};

// Copies between a GPU and its host that training adds (docs/offload.md), and
// what the host computes. Empty: none.
struct HostOffload {
  // A copy of activations in a forward, and back in its backward, and the
  // kernels that overlap with it.
  struct Window {
    double bytes = 0;
    double forward_seconds = 0, backward_seconds = 0;
  };
  std::vector<Window> windows;
  // Kernels before the first window of a forward, and of a backward, which has
  // the windows in reverse order.
  double forward_before_seconds = 0, backward_before_seconds = 0;
  double copy_bytes_per_second = 0;
  // Of an optimizer step: gradients to the host and weights back; memory
  // traffic on the host.
  double copied_optimizer_bytes = 0, host_step_bytes = 0;
  double host_state_bytes = 0;  // optimizer states on the host
};

// Costs of one stage, on each GPU of its tensor-parallel group. Generators
// order passes by schedules::StagePassCosts, which may have any units and have
// a default for every value (PassCostsOf).
struct StageCosts {
  StageSeconds seconds;
  StageLaunches launches;
  std::optional<StageKernels> kernels;  // absent: seconds given or measured
  StageCommunication communication;
  StageStep step;
  StageParameters parameters;
  StageActivations activations;
  HostOffload offload;
  int num_blocks = 0;  // of the model; 0 if costs were given
};

// Replicas that share the tokens of each sequence, all neighbors: `ring` groups
// of `neighbors`, in which collectives run. The GPUs at the same place of each
// group are a ring of messages.
struct ContextGroups {
  int neighbors = 1, ring = 1;

  int size() const { return neighbors * ring; }
  // Returns the replica that follows in the ring.
  int NextOf(int replica) const {
    const int first = replica / size() * size();
    return first + (replica - first + neighbors) % size();
  }
};

// Costs on one kind of GPU.
struct DeviceCosts {
  std::vector<StageCosts> stages;
  std::optional<double> peak_flops;  // absent: given costs
  // In the format of the recipe's forward GEMMs, if it has one: the peak for
  // model FLOP utilization.
  double recipe_peak_flops = 0;  // 0: peak_flops
  calibrate::KernelPrices prices;
  // Gap after every kernel of a pass; a negative gap saves at most the kernel's
  // seconds.
  double kernel_gap_seconds = 0;
  // Slowdown factors of passes while flows move data on the GPU.
  double collective_slowdown = 1, copy_slowdown = 1;
  // The partitioning of the physical GPU; null: not partitioned.
  const PartitionSlowdown* partition_slowdown = nullptr;
  std::optional<double> memory_bytes;  // absent: given costs
  double reserved_bytes = 0;
  double communication_buffer_bytes = 0;
  // The model with measured communicator memory, which is then counted; null:
  // none.
  const CollectiveModel* communicators = nullptr;
};

// Memory of communicators that a runtime states for all devices.
struct CommunicatorSizes {
  double bytes = 0, pair_bytes = 0;
  int num_others = 0;  // besides those of collectives that are simulated
};

// Costs on the first device, and costs that all devices share. Seconds differ
// between devices; bytes do not.
struct Costs : DeviceCosts {
  // If GPUs differ: the other devices, and the device of each GPU
  // (Placement::index), where 0 is the first device. Empty if all are alike.
  std::vector<DeviceCosts> other_devices;
  std::vector<int> gpu_device;

  // FLOP of one microbatch over all stages and the GPUs of one replica of the
  // placement: of all passes, and of the forwards alone. Absent for given costs
  // and measured models.
  std::optional<double> model_flops, forward_flops;
  // Replicas across which weights, gradients and states are sharded.
  int shards = 1;
  int optimizer_shards = 1;  // across which only states are sharded
  // Returns the fraction of a stage's states and of its step that each replica
  // has. Experts have fewer copies across which to shard.
  double stepped_part(const StageCosts& stage) const;
  // Returns the ranks across which an expert's weights are sharded.
  int expert_shards() const;
  // Returns what each replica has of `bytes` of sharded weights or gradients.
  double sharded_bytes(const StageCosts& stage, double bytes) const;
  // Groups of replicas that all have the same shards (hybrid sharding).
  int shard_replicas = 1;
  // GPUs across which the experts of a layer are distributed, and that share
  // each expert (0: the `tensor` GPUs that share other layers).
  int expert_parallel = 1;
  int expert_tensor = 0;
  int tensor = 1;
  // Part of the multiprocessors that exchanges of experts take from kernels
  // that overlap with them.
  double exchange_share = 0;
  ContextGroups context;
  // Gradient bytes that the first stage and `tied_stage` sum because they share
  // one embedding; 0: none.
  double tied_gradient_bytes = 0;
  int tied_stage = 0;
  // Null: collectives are rings at the full rate of the links.
  const CollectiveModel* collectives = nullptr;
  // The profile with measured sends between GPUs; null: none.
  const DeviceProfile* links = nullptr;
  double exchange_seconds = 0;  // added to every blocking exchange
  // Collectives of each layer if weights are sharded.
  ShardCalls shard_calls;
  // The gather of the weights that the previous step updated overlaps with the
  // first forward passes, except for the first bucket.
  bool overlaps_step_gather = false;
  double bucket_bytes = 0;  // for overlapped reductions
  // Ranks own whole matrices of sharded states, this many per layer: gradients
  // are reduced to all ranks, and each owner broadcasts its weights. 0: states
  // are split evenly.
  int owned_matrices_per_layer = 0;
  // The step makes fp32 copies of 16-bit gradients.
  bool widens_gradients = false;
  // Without a pipeline, sharded gradients are reduced after every microbatch.
  bool shards_each_gradient = false;
  // See the fields of Runtime with these names.
  bool frees_gradients = false;
  bool allocates_by_stream = false;
  // Absent: each device has its own.
  std::optional<CommunicatorSizes> communicator_sizes;
  // Fraction of bytes of transfers between ranks that remains after
  // compression.
  double compression = 1;

  const DeviceCosts& device_of(int gpu) const {
    const int device = gpu_device.empty() ? 0 : gpu_device[gpu];
    return device == 0 ? *this : other_devices[device - 1];
  }
  const StageCosts& of(int gpu, int stage) const {
    return device_of(gpu).stages[stage];
  }
  // Returns what a GPU sends for one microbatch, and receives as its gradient.
  double sent_bytes(int stage) const {
    return stages[stage].communication.output_bytes * compression * sent_part;
  }
  double sent_part = 1;  // below 1: each GPU of a tensor group sends its part
};

// Prices `num_stages` stages: partition, kernels, memory. `num_versions` is the
// largest number of weight versions of each stage: with more than one, the
// optimizer step copies weights. Returns InvalidArgument if given costs are for
// another number of stages, the layers cannot be cut into `num_stages`, or a
// device lacks a rate that the scenario needs.
absl::StatusOr<Costs> ComputeCosts(const scenarios::ResolvedScenario& scenario,
                                   int num_stages,
                                   const std::vector<int>& num_versions);

// The same with every layer as a "stage" of its own with one version,
// regardless of the scenario's partition, and MTP modules as a part of the
// head; for planners that partition layers. Returns InvalidArgument for given
// costs.
absl::StatusOr<Costs> ComputeLayerCosts(
    const scenarios::ResolvedScenario& scenario);

}  // namespace weir::sim

#endif  // WEIR_SIM_COSTS_STAGE_COSTS_H_
