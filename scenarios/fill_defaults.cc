// SPDX-License-Identifier: Apache-2.0
#include "scenarios/fill_defaults.h"

#include <algorithm>

namespace weir::scenarios {

void FillDefaults(Scenario& scenario) {
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(std::max(parallelism.tensor(), 1u));
  parallelism.set_data(std::max(parallelism.data(), 1u));
  parallelism.set_expert(std::max(parallelism.expert(), 1u));
  parallelism.set_pipeline(std::max(parallelism.pipeline(), 1u));
  parallelism.set_chunks(std::max(parallelism.chunks(), 1u));
  if (parallelism.context() > 1 &&
      parallelism.context_method() == CONTEXT_METHOD_UNSPECIFIED) {
    parallelism.set_context_method(CONTEXT_P2P);
  }
  if (parallelism.order().empty() && parallelism.gpus().empty())
    parallelism.set_order("tp-dp-pp");
  if (scenario.has_costs()) {
    Communication& communication = *scenario.mutable_communication();
    if (communication.transfers() == TRANSFER_UNSPECIFIED)
      communication.set_transfers(OVERLAPPED);
    if (communication.gradient_reduction() == REDUCTION_UNSPECIFIED)
      communication.set_gradient_reduction(REDUCTION_BLOCKING);
    return;
  }
  Batch& batch = *scenario.mutable_batch();
  batch.set_microbatch_size(std::max(batch.microbatch_size(), 1u));
  Training& training = *scenario.mutable_training();
  if (training.optimizer() == OPTIMIZER_UNSPECIFIED)
    training.set_optimizer(ADAM);
  // Its ranks own matrices.
  if (training.optimizer() == DIST_MUON &&
      !training.has_distributed_optimizer()) {
    training.set_distributed_optimizer(true);
  }
  if (training.optimizer() == MUON && !training.has_distributed_optimizer())
    training.set_distributed_optimizer(false);
  if (training.stash_bytes_per_parameter() == 0)
    training.set_stash_bytes_per_parameter(4);  // fp32 master weights
}

void ApplyRecipe(const Recipe& loaded, Scenario* scenario, Recipe* recipe) {
  Training& training = *scenario->mutable_training();
  *recipe = loaded;
  if (!training.recipe().empty() &&
      training.precision() == PRECISION_UNSPECIFIED) {
    training.set_precision(recipe->precision() == PRECISION_UNSPECIFIED
                               ? MIXED_BF16
                               : recipe->precision());
  }
  if (training.has_quantized_parameters())
    recipe->set_quantized_parameters(training.quantized_parameters());
  if (training.has_first_blocks_in_16_bits())
    recipe->set_first_blocks_in_16_bits(training.first_blocks_in_16_bits());
  if (training.has_last_blocks_in_16_bits())
    recipe->set_last_blocks_in_16_bits(training.last_blocks_in_16_bits());
  if (training.first_moment() != STATE_FORMAT_UNSPECIFIED)
    recipe->set_first_moment(training.first_moment());
  if (training.second_moment() != STATE_FORMAT_UNSPECIFIED)
    recipe->set_second_moment(training.second_moment());
  if (training.main_weights() != STATE_FORMAT_UNSPECIFIED)
    recipe->set_main_weights(training.main_weights());
  if (training.has_attention_format())
    recipe->set_attention(training.attention_format());
  if (training.has_dispatch_format())
    recipe->set_dispatch(training.dispatch_format());
}

void FillDefaultsOf(const Runtime& runtime, Scenario* scenario,
                    UsedDefaults* used) {
  Training& training = *scenario->mutable_training();
  if (training.has_fp32_gradients() || !runtime.fp32_gradients_with_bf16() ||
      training.precision() != MIXED_BF16) {
    return;
  }
  training.set_fp32_gradients(true);
  used->used.emplace_back("fp32 gradients");
}

}  // namespace weir::scenarios
