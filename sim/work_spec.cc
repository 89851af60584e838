// SPDX-License-Identifier: Apache-2.0
#include "sim/work_spec.h"

#include <cstdint>

namespace weir {
namespace {

// Some fused kernels only take shapes that divide; see softmax_heads_multiple.
bool FusesSoftmax(const Runtime& runtime, const Transformer& transformer,
                  const WorkSpec& spec) {
  if (runtime.unfused_softmax()) return false;
  const uint32_t multiple = runtime.softmax_heads_multiple();
  const uint32_t heads = transformer.num_heads() / spec.tensor_parallel;
  return multiple == 0 || heads * spec.microbatch_size % multiple == 0;
}

}  // namespace

WorkSpec MakeWorkSpec(const ResolvedScenario& resolved) {
  const Scenario& scenario = resolved.scenario;
  const Runtime& runtime = resolved.runtime;
  WorkSpec spec;
  spec.microbatch_size = scenario.batch().microbatch_size();
  spec.sequence_length = scenario.batch().sequence_length();
  spec.tensor_parallel = scenario.parallelism().tensor();
  spec.expert_parallel =
      std::max(static_cast<int>(scenario.parallelism().expert()), 1);
  spec.sequence_parallel = scenario.parallelism().sequence_parallel();
  spec.flash_attention = scenario.training().flash_attention();
  spec.dropout = scenario.training().dropout();
  switch (scenario.training().recompute()) {
    case RECOMPUTE_SELECTIVE:
      spec.recompute = Recompute::kSelective;
      break;
    case RECOMPUTE_FULL:
      spec.recompute = Recompute::kFull;
      break;
    default:
      spec.recompute = Recompute::kNone;
  }
  const bool mixed = scenario.training().precision() != FP32;
  spec.bytes_per_element = mixed ? 2 : 4;
  spec.gradient_bytes = mixed && !scenario.training().fp32_gradients() ? 2 : 4;
  spec.tensor_async = runtime.overlaps_tensor_collectives();
  spec.fused_softmax =
      FusesSoftmax(runtime, resolved.model.transformer(), spec);
  spec.fused_bias_gelu = !runtime.unfused_bias_gelu();
  spec.fused_bias_dropout_add = !runtime.unfused_bias_dropout_add();
  spec.fused_gradient_accumulation = !runtime.unfused_gradient_accumulation();
  spec.fused_cross_entropy = !runtime.unfused_cross_entropy();
  spec.vocabulary_multiple = static_cast<int>(runtime.vocabulary_multiple());
  return spec;
}

}  // namespace weir
