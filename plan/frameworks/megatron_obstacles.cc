// SPDX-License-Identifier: Apache-2.0
// Constraints of validate_args in megatron/training/arguments.py and of
// megatron/core (NVIDIA/Megatron-LM, November 2025).
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibrate/profile/runtime.h"
#include "models/block_spec.h"
#include "models/recipe.h"
#include "plan/frameworks/megatron_arguments.h"
#include "plan/search/interleaving.h"
#include "plan/search/same_order.h"

namespace weir::plan {
namespace {

class Obstacles {
 public:
  explicit Obstacles(const scenarios::ResolvedScenario& resolved)
      : resolved_(resolved), scenario_(resolved.scenario) {}

  std::vector<std::string> All() {
    if (!resolved_.model.has_transformer()) {
      return {
          "the model consists of measured layers, which arguments cannot "
          "describe"};
    }
    CheckSchedule();
    CheckModel(resolved_.model.transformer());
    CheckParallelism();
    CheckTraining();
    return std::move(reasons_);
  }

 private:
  void Refuse(bool refused, std::string reason) {
    if (refused) reasons_.push_back(std::move(reason));
  }

  void CheckSchedule() {
    const auto runtime = calibrate::LoadRuntime("megatron-lm");
    if (!runtime.ok()) {
      reasons_.emplace_back(runtime.status().message());
      return;
    }
    const Parallelism& parallelism = scenario_.parallelism();
    const int least = MegatronMinRanksToInterleave(scenario_.communication());
    const bool too_few = parallelism.chunks() > 1 &&
                         static_cast<int>(parallelism.pipeline()) < least;
    Refuse(too_few,
           absl::StrCat("interleaved 1F1B ",
                        least > 2 ? "without overlapped transfers " : "",
                        "needs at least ", least, " pipeline ranks"));
    Refuse(!too_few && !Executes(*runtime, resolved_),
           absl::StrCat("it does not have the schedule ", scenario_.schedule(),
                        ", only ", absl::StrJoin(runtime->schedules(), ", ")));
  }

  void CheckModel(const Transformer& model) {
    Refuse(!model.causal() || model.post_norm() || model.embedding_norm() ||
               model.mlm_head() || model.pooler() ||
               model.num_token_types() > 0,
           "the model is not a GPT");
    const int biases = (model.attention_bias() ? 1 : 0) +
                       (model.attention_output_bias() ? 1 : 0) +
                       (model.feed_forward_bias() ? 1 : 0);
    Refuse(biases == 2 || (biases == 1 && !model.attention_bias()),
           "it supports biases in all projections, only in query, key and "
           "value, or in none");
    Refuse(model.shared_expert_gate(),
           "it does not support gates of shared experts");
    std::vector<std::string> special = models::SpecialFields(model);
    std::erase(special, "num_mtp_modules");
    Refuse(!special.empty(),
           absl::StrCat("weir does not write its arguments for ",
                        absl::StrJoin(special, ", ")));
  }

  void CheckParallelism() {
    const Parallelism& parallelism = scenario_.parallelism();
    const Training& training = scenario_.training();
    Refuse(!parallelism.gpus().empty(),
           "it numbers GPUs only as tp-dp-pp or tp-pp-dp");
    Refuse(parallelism.expert() > 1 && training.precision() == MIXED_FP16,
           "expert parallelism needs bf16 or fp32");
    Refuse(parallelism.vocabulary_parallel() != VOCABULARY_PARALLEL_UNSPECIFIED,
           "it does not shard the vocabulary across pipeline ranks");
    Refuse(scenario_.batch().has_packed_sequences(),
           "weir does not write its arguments for packed sequences");
    if (!training.fully_sharded()) return;
    Refuse(parallelism.pipeline() > 1 || parallelism.expert() > 1 ||
               parallelism.expert_tensor() > 0 ||
               training.precision() == MIXED_FP16 ||
               resolved_.model.transformer().tied_embeddings(),
           "--use-torch-fsdp2 needs one pipeline rank, no expert parallelism, "
           "no fp16 and untied embeddings");
    Refuse(parallelism.data_replicate() > 1,
           "weir writes no hybrid sharding with --use-torch-fsdp2");
  }

  void CheckTraining() {
    const Training& training = scenario_.training();
    Refuse(training.distributed_optimizer() &&
               training.optimizer() == SGD_MOMENTUM,
           "its distributed optimizer supports only Adam");
    Refuse(training.flash_attention() && training.precision() == FP32,
           "FlashAttention needs fp16 or bf16");
    const Recipe& recipe = resolved_.recipe;
    const std::vector<OperandFormat> formats = models::FormatsOf(recipe);
    Refuse(!formats.empty() &&
               (formats.size() > 1 || formats[0] == OPERAND_MXFP4 ||
                recipe.forward() == OPERAND_16_BIT),
           "it has no recipe with these formats of GEMMs");
    Refuse(training.lora().rank() > 0,
           "it has no low-rank adapters; Megatron Bridge adds them (peft)");
    Refuse(recipe.attention() != OPERAND_16_BIT ||
               recipe.dispatch() != OPERAND_16_BIT,
           "weir does not write its arguments for attention or dispatch in 8 "
           "bits");
    Refuse(training.recompute() == RECOMPUTE_OPERATORS,
           "it does not recompute by operators");
    Refuse(training.cpu_offloading_num_layers() > 0 &&
               scenario_.parallelism().pipeline() > 1,
           "it offloads activations only without a pipeline");
    Refuse(training.optimizer_offload_fraction() > 0,
           "its optimizer on the host needs --use-precision-aware-optimizer, "
           "which is not simulated");
    Refuse(training.recompute_method() == RECOMPUTE_EVERY,
           "it recomputes no every n-th layer: use --recompute-method block");
  }

  const scenarios::ResolvedScenario& resolved_;
  const Scenario& scenario_;
  std::vector<std::string> reasons_;
};

}  // namespace

std::vector<std::string> MegatronObstacles(
    const scenarios::ResolvedScenario& scenario) {
  return Obstacles(scenario).All();
}

}  // namespace weir::plan
