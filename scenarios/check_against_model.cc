// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/block_spec.h"
#include "models/context_parallel.h"
#include "models/describe.h"
#include "models/expert_load.h"
#include "models/layout.h"
#include "scenarios/check_scenario.h"
#include "scenarios/check_stages.h"
#include "scenarios/check_training.h"
#include "scenarios/cuda_graphs.h"
#include "scenarios/recomputation.h"
#include "scenarios/vocabulary_parallel.h"

namespace weir::scenarios {
namespace {

void CheckImbalance(Problems& problems, double imbalance,
                    const Transformer& transformer) {
  if (imbalance <= 1) return;
  const std::string field = "training.expert_imbalance";
  if (transformer.num_experts() == 0) {
    problems.Add(field, absl::StrCat("is ", imbalance,
                                     ", expected 1: the model has no experts"));
  } else if (transformer.capacity_factor() > 0 &&
             !transformer.unpadded_capacity()) {
    problems.Add(field,
                 absl::StrCat("is ", imbalance,
                              ", expected 1: with the model's capacity_factor, "
                              "every expert processes equally many tokens"));
  } else if (const double most = models::LargestImbalance(transformer);
             imbalance > most) {
    problems.Add(
        field,
        absl::StrCat("is ", imbalance, ", expected at most ", most,
                     ", the model's ", transformer.num_experts(), " experts / ",
                     transformer.experts_per_token(), " experts per token"));
  }
}

void CheckExperts(Problems& problems, const Parallelism& parallelism,
                  const Transformer& transformer) {
  const uint32_t expert = std::max(parallelism.expert(), 1u);
  const uint32_t num_experts = transformer.num_experts();
  if (num_experts == 0) {
    if (expert > 1) {
      problems.Add("parallelism.expert",
                   absl::StrCat("is ", expert,
                                ", expected 1: the model has no experts"));
    }
    if (parallelism.expert_tensor() > 1) {
      problems.Add("parallelism.expert_tensor",
                   absl::StrCat("is ", parallelism.expert_tensor(),
                                ", expected 1: the model has no experts"));
    }
    return;
  }
  const uint32_t width = transformer.expert_feed_forward_size();
  if (parallelism.expert_tensor() > 0 &&
      width % parallelism.expert_tensor() != 0) {
    problems.Add("parallelism.expert_tensor",
                 absl::StrCat("is ", parallelism.expert_tensor(),
                              ", expected a divisor of the model's ", width,
                              " feed-forward units per expert"));
  }
  if (num_experts % expert != 0) {
    problems.Add("parallelism.expert",
                 absl::StrCat("is ", expert,
                              ", expected a divisor of the "
                              "model's ",
                              num_experts, " experts"));
  }
  if (parallelism.tensor() > 1 && !parallelism.sequence_parallel()) {
    problems.Add("parallelism.sequence_parallel",
                 "is off, expected on: tensor parallelism of a model with "
                 "experts needs it, as in Megatron-LM");
  }
}

// Transformer Engine's requirements on context parallelism.
void CheckContext(Problems& problems, const Scenario& scenario,
                  const Transformer& transformer) {
  const Parallelism& parallelism = scenario.parallelism();
  const uint32_t size = std::max(parallelism.context(), 1u);
  if (size == 1) return;
  if (!scenario.training().flash_attention()) {
    problems.Add("training.flash_attention",
                 "is off, expected on: context parallelism needs fused "
                 "attention");
  }
  const uint32_t tokens = scenario.batch().sequence_length();
  const models::ContextSpec context = models::ContextSpecOf(
      parallelism.context_method(), static_cast<int>(size),
      {parallelism.hierarchical_context().begin(),
       parallelism.hierarchical_context().end()});
  if (tokens % (2 * size) != 0) {
    problems.Add("batch.sequence_length",
                 absl::StrCat("is ", tokens, ", expected a multiple of 2 x ",
                              "parallelism.context ", size, " = ", 2 * size,
                              ": each rank has two chunks of every sequence"));
  }
  const uint32_t tensor = std::max(parallelism.tensor(), 1u);
  const uint32_t heads = transformer.num_kv_heads() > 0
                             ? transformer.num_kv_heads()
                             : transformer.num_heads();
  const auto parts = static_cast<uint32_t>(context.heads_parallel);
  if (parts > 1 && heads % (tensor * parts) != 0) {
    problems.Add("parallelism.context_method",
                 absl::StrCat("is ", models::ContextMethodName(context.method),
                              " over ", parts,
                              " GPUs, expected that these x "
                              "parallelism.tensor ",
                              tensor, " divide the model's ", heads,
                              " key-value heads"));
  }
  const std::string other = models::BlockWithoutContext(transformer);
  if (!other.empty()) {
    problems.Add("parallelism.context",
                 absl::StrCat("is ", size,
                              ", expected 1: exchanges of the "
                              "model's ",
                              other, " are not simulated"));
  }
  if (models::HasWindow(transformer) && context.ring > 1 &&
      context.method != CONTEXT_ALL_GATHER) {
    problems.Add("parallelism.context_method",
                 absl::StrCat("is ", models::ContextMethodName(context.method),
                              ", expected all_gather or a2a: the model's "
                              "attention has a sliding window"));
  }
}

// A tied embedding has a copy in the last stage. MTP modules in another stage
// need a third one.
void CheckTiedMtp(Problems& problems, const Parallelism& parallelism,
                  const Transformer& transformer) {
  if (!transformer.tied_embeddings() || parallelism.layout().empty()) return;
  const auto layout = models::ParseLayout("", parallelism.layout());
  if (!layout.ok()) return;  // reported by CheckLayout
  for (size_t stage = 1; stage + 1 < layout->size(); ++stage) {
    if (!absl::StrContains((*layout)[stage], 'm')) continue;
    problems.Add("parallelism.layout",
                 absl::StrCat("has MTP modules (m) in stage ", stage,
                              ", expected the last stage: the model's "
                              "embeddings are tied, and sums over three "
                              "stages are not simulated"));
    return;
  }
}

// Fused kernels take documents of different lengths (the format thd of
// Transformer Engine, varlen of FlashAttention).
void CheckPackedSequences(Problems& problems, const Scenario& scenario,
                          const Transformer& transformer) {
  if (!scenario.batch().has_packed_sequences()) return;
  if (!scenario.training().flash_attention()) {
    problems.Add("training.flash_attention",
                 "is off, expected on: packed sequences need fused attention");
  }
  const std::string other = models::BlockWithoutContext(transformer);
  if (!other.empty()) {
    problems.Add("batch.packed_sequences",
                 absl::StrCat("is given, expected none: documents in the "
                              "model's ",
                              other, " are not simulated"));
  }
}

void CheckAgainstTransformer(Problems& problems, const Scenario& scenario,
                             const Transformer& transformer) {
  const Parallelism& parallelism = scenario.parallelism();
  const uint32_t tensor = std::max(parallelism.tensor(), 1u);
  CheckTensorDegree(problems, tensor, transformer,
                    parallelism.expert_tensor() > 0);
  CheckExperts(problems, parallelism, transformer);
  CheckImbalance(problems, scenario.training().expert_imbalance(), transformer);
  const std::string other = models::BlockWithOtherOperators(transformer);
  if (scenario.training().recompute() == RECOMPUTE_OPERATORS &&
      !other.empty()) {
    problems.Add("training.recompute",
                 absl::StrCat("is RECOMPUTE_OPERATORS, expected none, "
                              "selective or full: each ",
                              other,
                              " of the model has other parts than attention "
                              "and a feed-forward layer"));
  }
  CheckContext(problems, scenario, transformer);
  CheckRecomputation(problems, scenario.training(), transformer);
  CheckCudaGraphs(problems, scenario.training(), transformer);
  const uint32_t sequence_length = scenario.batch().sequence_length();
  if (transformer.num_positions() > 0 &&
      sequence_length > transformer.num_positions()) {
    problems.Add(
        "batch.sequence_length",
        absl::StrCat("is ", sequence_length, ", expected at most the model's ",
                     transformer.num_positions(), " positions"));
  }
  const uint32_t context = std::max(parallelism.context(), 1u);
  if (parallelism.sequence_parallel() &&
      sequence_length % (uint64_t{tensor} * context) != 0) {
    problems.Add(
        "parallelism.sequence_parallel",
        absl::StrCat("cannot divide sequences of ", sequence_length,
                     " tokens over tensor ", tensor,
                     context > 1 ? absl::StrCat(" x context ", context) : ""));
  }
  CheckLayoutAgainst(problems, parallelism,
                     static_cast<int>(transformer.num_layers()),
                     static_cast<int>(transformer.num_mtp_modules()));
  CheckTiedMtp(problems, parallelism, transformer);
  CheckPackedSequences(problems, scenario, transformer);
  if (parallelism.blocks_per_stage().empty()) return;
  double num_blocks = 0;
  for (const uint32_t blocks : parallelism.blocks_per_stage())
    num_blocks += blocks;
  if (num_blocks != transformer.num_layers()) {
    problems.Add("parallelism.blocks_per_stage",
                 absl::StrFormat("adds up to %.0f blocks, expected the model's "
                                 "%d",
                                 num_blocks, transformer.num_layers()));
  }
}

void CheckAgainstMeasured(Problems& problems, const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  const Training& training = scenario.training();
  const auto refuse = [&](const char* field, const std::string& what) {
    problems.Add(field,
                 absl::StrCat(what,
                              ": the layers of the model were measured as they "
                              "ran"));
  };
  const auto refuse_above_one = [&](const char* field, auto found) {
    if (found > 1) {
      refuse(field, absl::StrCat("is ", found, ", expected at most 1"));
    }
  };
  const auto refuse_true = [&](const char* field, bool found) {
    if (found) refuse(field, "is true, expected false");
  };
  refuse_above_one("parallelism.tensor", parallelism.tensor());
  refuse_above_one("parallelism.expert", parallelism.expert());
  refuse_above_one("parallelism.expert_tensor", parallelism.expert_tensor());
  refuse_above_one("training.expert_imbalance", training.expert_imbalance());
  refuse_above_one("parallelism.context", parallelism.context());
  refuse_true("parallelism.sequence_parallel", parallelism.sequence_parallel());
  if (!parallelism.layout().empty()) {
    refuse("parallelism.layout", "is given, expected none");
  }
  if (scenario.batch().sequence_length() > 0) {
    refuse("batch.sequence_length",
           absl::StrCat("is ", scenario.batch().sequence_length(),
                        ", expected 0"));
  }
  refuse_true("training.flash_attention", training.flash_attention());
  refuse_true("training.dropout", training.dropout());
  const RecomputeMode recompute = training.recompute();
  if (recompute == RECOMPUTE_SELECTIVE || recompute == RECOMPUTE_OPERATORS) {
    problems.Add("training.recompute",
                 absl::StrCat("is ", models::RecomputeName(recompute),
                              ", expected none or full: measured layers "
                              "cannot be divided"));
  }
}

}  // namespace

// Megatron splits heads, key-value heads, and the two matrices of the
// feed-forward layer. A key-value head may also be copied to several ranks.
void CheckTensorDegree(Problems& problems, uint32_t tensor,
                       const Transformer& transformer, bool own_expert_size) {
  const auto check = [&](uint32_t size, const char* what, bool divides) {
    if (divides) return;
    problems.Add("parallelism.tensor",
                 absl::StrCat("is ", tensor,
                              ", expected a divisor of the "
                              "model's ",
                              size, " ", what));
  };
  const uint32_t kv_heads = transformer.num_kv_heads() > 0
                                ? transformer.num_kv_heads()
                                : transformer.num_heads();
  check(transformer.num_heads(), "heads",
        transformer.num_heads() % tensor == 0);
  check(kv_heads, "key-value heads (or a multiple)",
        kv_heads % tensor == 0 || tensor % std::max(kv_heads, 1u) == 0);
  check(transformer.hidden_size(), "hidden units",
        transformer.hidden_size() % tensor == 0);
  check(transformer.feed_forward_size(), "feed-forward units",
        transformer.feed_forward_size() % tensor == 0);
  check(
      transformer.expert_feed_forward_size(), "feed-forward units per expert",
      own_expert_size || transformer.expert_feed_forward_size() % tensor == 0);
  for (const models::BlockSpec& block : models::BlocksOf(transformer).kinds) {
    const uint32_t heads = models::MixerHeads(block.transformer);
    if (!block.mixer || heads == transformer.num_heads()) continue;
    check(heads, absl::StrCat("heads of each ", block.name).c_str(),
          heads % tensor == 0);
  }
  if (transformer.has_encoder()) {
    const uint32_t heads = transformer.encoder().blocks().num_heads();
    check(heads, "heads of the encoder", heads % tensor == 0);
  }
}

void CheckAgainstModel(Problems& problems, const Scenario& scenario,
                       const Model& model, StageCheck stages) {
  // Only now are all defaults known.
  const Training& training = scenario.training();
  if (scenario.parallelism().data_replicate() > 1 &&
      !training.fully_sharded() && !training.distributed_optimizer()) {
    problems.Add("parallelism.data_replicate",
                 absl::StrCat("is ", scenario.parallelism().data_replicate(),
                              ", expected 1 unless training.fully_sharded or "
                              "training.distributed_optimizer shards "
                              "something"));
  }
  if (stages != StageCheck::kNone && !HasOptions(scenario)) {
    CheckStages(problems, scenario.parallelism(), model,
                stages == StageCheck::kDividesGpus);
  }
  CheckVocabularyParallel(problems, scenario, model);
  if (model.has_transformer()) {
    CheckAgainstTransformer(problems, scenario, model.transformer());
  } else {
    CheckAgainstMeasured(problems, scenario);
  }
  CheckAdaptersAgainst(problems, scenario, model);
  CheckDispatchAgainst(problems, scenario, model);
}

}  // namespace weir::scenarios
