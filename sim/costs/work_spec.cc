// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/work_spec.h"

#include <algorithm>
#include <string>

#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/runtime.h"
#include "models/context_parallel.h"
#include "models/expert_load.h"
#include "models/quantization.h"
#include "models/recipe.h"
#include "scenarios/check_scenario.h"
#include "scenarios/cuda_graphs.h"
#include "scenarios/recomputation.h"
#include "sim/costs/device_costs.h"
#include "sim/costs/documents.h"
#include "sim/costs/muon.h"

namespace weir::sim {
namespace {

// All devices of a scenario share the bytes of layers: those of devices that
// need transposed copies, if any does.
models::Quantization QuantizationIn(
    const scenarios::ResolvedScenario& resolved) {
  const std::string fp8 = models::Name(OPERAND_FP8);
  const auto needs_copies = [&](const DeviceProfile& device) {
    const MatrixRate* rate = calibrate::FindRate(device, fp8);
    return rate != nullptr && rate->transposed_copies();
  };
  bool copies = needs_copies(resolved.device);
  for (const DeviceProfile& device : resolved.other_devices) {
    copies = copies || needs_copies(device);
  }
  models::Quantization formats =
      models::QuantizationOf(resolved.recipe, copies);
  // Sharded weights are freed after each use, with their copies.
  formats.casts_weights_each_pass =
      resolved.scenario.training().fully_sharded();
  return formats;
}

// Sets the kernels of the router, and what CUDA graphs launch.
void SetHostLaunches(const scenarios::ResolvedScenario& resolved,
                     models::WorkSpec* spec) {
  const Runtime& runtime = resolved.runtime;
  const Training& training = resolved.scenario.training();
  spec->router_kernels =
      std::max(static_cast<int>(scenarios::FusesRouter(training, runtime)
                                    ? runtime.fused_router_kernels()
                                    : runtime.router_kernels()),
               models::kLeastRouterKernels);
  for (const int scope : training.cuda_graph_scope()) {
    spec->graph_scopes |= uint32_t{1} << scope;
  }
}

}  // namespace

models::WorkSpec MakeWorkSpec(const scenarios::ResolvedScenario& resolved) {
  const Scenario& scenario = resolved.scenario;
  models::WorkSpec spec;
  spec.microbatch_size = scenario.batch().microbatch_size();
  spec.sequence_length = scenario.batch().sequence_length();
  spec.tensor_parallel = scenario.parallelism().tensor();
  spec.expert_parallel =
      std::max(static_cast<int>(scenario.parallelism().expert()), 1);
  const Parallelism& parallelism = scenario.parallelism();
  spec.expert_tensor_parallel = static_cast<int>(parallelism.expert_tensor());
  spec.expert_load = models::ExpertLoad(resolved.model.transformer(),
                                        scenario.training().expert_imbalance(),
                                        spec.expert_parallel);
  spec.accepted_tokens = models::AcceptedTokens(
      resolved.model.transformer(), scenario.training().expert_imbalance());
  if (parallelism.context() > 1) {
    spec.context = models::ContextSpecOf(
        parallelism.context_method(), static_cast<int>(parallelism.context()),
        {parallelism.hierarchical_context().begin(),
         parallelism.hierarchical_context().end()});
  }
  spec.sequence_parallel = scenario.parallelism().sequence_parallel();
  spec.flash_attention = scenario.training().flash_attention();
  spec.dropout = scenario.training().dropout();
  spec.recompute = scenarios::RecomputeOf(scenario.training());
  const bool mixed = scenario.training().precision() != FP32;
  spec.bytes_per_element = mixed ? 2 : 4;
  spec.gradient_bytes = mixed && !scenario.training().fp32_gradients() ? 2 : 4;
  spec.quantization = QuantizationIn(resolved);
  const Lora& lora = scenario.training().lora();
  spec.lora.rank = static_cast<int>(lora.rank());
  for (const int module : lora.target_modules()) {
    spec.lora.modules |= 1u << module;
  }
  if (lora.target_modules().empty()) spec.lora.modules = ~0u;
  spec.lists_matrices = UsesMuon(scenario.training());
  const Communication& communication = scenario.communication();
  spec.token_dispatcher = communication.token_dispatcher();
  spec.dispatch_multiprocessors = DispatchMultiprocessors(communication);
  if (scenario.parallelism().vocabulary_parallel() !=
      VOCABULARY_PARALLEL_UNSPECIFIED) {
    spec.vocabulary_shards =
        std::max(static_cast<int>(parallelism.pipeline()), 1);
  }
  if (scenario.batch().has_packed_sequences()) {
    spec.documents = DocumentsOfScenario(scenario);
  }
  SetHostLaunches(resolved, &spec);
  calibrate::SetFusions(resolved.runtime, resolved.model.transformer(), &spec);
  if (communication.has_tp_comm_overlap()) {
    spec.tensor_pieces = communication.tp_comm_overlap();
  }
  return spec;
}

}  // namespace weir::sim
