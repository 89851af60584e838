// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/program_memory.h"

#include <algorithm>

#include "sim/costs/optimizer_step.h"

namespace weir::sim {
namespace {

constexpr double kFp32Bytes = 4;

// Returns the elements of the largest weight tensor of a layer. The embedding
// and the head consist of little more than their table.
double LargestTensor(const models::LayerWork& layer) {
  if (layer.role != models::LayerRole::kBlock) {
    return layer.parameters - layer.expert_parameters;  // of MTP modules
  }
  double largest = 0;
  for (const models::Kernel& kernel : layer.forward) {
    if (kernel.kind != models::Kernel::Kind::kGemm ||
        kernel.part == models::KernelPart::kAttentionGemm ||
        kernel.part == models::KernelPart::kRecurrence) {
      continue;
    }
    largest = std::max(largest, kernel.batch * kernel.n * kernel.k);
  }
  return std::min(largest, layer.parameters);
}

double LargestTensor(const models::LayerList& layers, int first, int last) {
  double largest = 0;
  for (int l = first; l < last; ++l) {
    largest = std::max(largest, LargestTensor(layers[l]));
  }
  return largest;
}

}  // namespace

bool KeepsLowPrecisionGradients(const Runtime& runtime,
                                const Training& training) {
  return runtime.keeps_low_precision_gradients() &&
         training.precision() == MIXED_BF16 && training.fp32_gradients();
}

StepBuffers StepBuffersOf(const models::LayerList& layers, int first, int last,
                          const Training& training, const Runtime& runtime,
                          int num_replicas, double part,
                          const StageParameters& parameters) {
  StepBuffers buffers;
  const double widened = parameters.fp32_bytes * part;
  if (!runtime.flattens_gradients() || training.precision() == FP32) {
    if (WidensGradients(runtime, training)) {
      buffers.bytes = buffers.separate_bytes = widened;
    }
    return buffers;
  }
  const double elements = parameters.fp32_bytes / kFp32Bytes;
  if (elements == 0) return buffers;
  const double bucket =
      num_replicas > 1 ? std::min(runtime.flat_bucket_elements(), elements) : 0;
  const double gather = training.distributed_optimizer()
                            ? bucket * parameters.gathered_bytes() / elements
                            : 0;
  if (training.fp32_gradients()) {
    buffers.bytes = buffers.separate_bytes = std::max(
        kFp32Bytes * std::min(LargestTensor(layers, first, last), elements),
        gather);
    return buffers;
  }
  const double reduction = bucket * parameters.gradient_bytes / elements;
  const double copies = training.distributed_optimizer()
                            ? parameters.gradient_bytes * part
                            : widened;
  buffers.bytes = std::max({reduction, copies + widened, gather});
  buffers.separate_bytes = reduction + copies + gather;
  return buffers;
}

double StepBytes(const Costs& costs, const StageCosts& stage) {
  const double widened = costs.widens_gradients ? stage.parameters.fp32_bytes *
                                                      costs.stepped_part(stage)
                                                : 0;
  return std::max(widened, stage.step.buffers.bytes);
}

std::optional<CommunicatorSizes> CommunicatorSizesOf(
    const scenarios::ResolvedScenario& scenario) {
  const Runtime& runtime = scenario.runtime;
  if (!runtime.has_communicator_bytes() || scenario.cluster.plain_links()) {
    return {};
  }
  CommunicatorSizes sizes;
  sizes.bytes = runtime.communicator_bytes().value();
  sizes.pair_bytes = runtime.pair_communicator_bytes().value();
  sizes.num_others = static_cast<int>(runtime.num_communicators());
  if (scenario.placement.pipeline > 1) {
    sizes.num_others += static_cast<int>(runtime.num_pipeline_communicators());
  }
  return sizes;
}

double CommunicatorBytes(const Costs& costs, const DeviceCosts& device,
                         const calibrate::CommunicatorCounts& counts,
                         int num_gpus) {
  if (device.communicators != nullptr) {
    return calibrate::CommunicatorBytes(*device.communicators, counts);
  }
  if (num_gpus == 1) return 0;
  if (!costs.communicator_sizes.has_value()) {
    return device.communication_buffer_bytes;
  }
  const CommunicatorSizes& sizes = *costs.communicator_sizes;
  return sizes.bytes *
             (counts.num_in_node + counts.num_across_nodes + sizes.num_others) +
         sizes.pair_bytes * counts.num_pair_peers;
}

}  // namespace weir::sim
