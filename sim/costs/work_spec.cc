// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/work_spec.h"

#include <algorithm>

#include "calibrate/profile/runtime.h"
#include "models/context_parallel.h"
#include "scenarios/recomputation.h"

namespace weir::sim {
models::WorkSpec MakeWorkSpec(const scenarios::ResolvedScenario& resolved) {
  const Scenario& scenario = resolved.scenario;
  models::WorkSpec spec;
  spec.microbatch_size = scenario.batch().microbatch_size();
  spec.sequence_length = scenario.batch().sequence_length();
  spec.tensor_parallel = scenario.parallelism().tensor();
  spec.expert_parallel =
      std::max(static_cast<int>(scenario.parallelism().expert()), 1);
  const Parallelism& parallelism = scenario.parallelism();
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
  calibrate::SetFusions(resolved.runtime, resolved.model.transformer(), &spec);
  return spec;
}

}  // namespace weir::sim
