// SPDX-License-Identifier: Apache-2.0
// Requirements of the count of a layer's work on its input.
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "models/block_spec.h"
#include "models/layer_work.h"

namespace weir::models {
namespace {

void CheckTensorParallel(const Transformer& transformer, uint32_t t,
                         Problems* problems) {
  const uint32_t heads = transformer.num_heads();
  if (heads % t != 0) {
    problems->Add("tensor_parallel",
                  absl::StrFormat("is %d, expected a divisor of the model's "
                                  "%d attention heads",
                                  t, heads));
    return;
  }
  const uint32_t kv_heads = transformer.num_kv_heads();
  if (kv_heads != 0 && kv_heads % t != 0 && t % kv_heads != 0) {
    problems->Add("tensor_parallel",
                  absl::StrFormat("is %d, expected a divisor or a multiple of "
                                  "the model's %d key-value heads",
                                  t, kv_heads));
  }
}

// Checks blocks whose heads, or groups of heads, are not those of the model.
void CheckBlocksDivide(const Transformer& transformer, uint32_t t,
                       Problems* problems) {
  const auto check = [&](uint32_t count, const std::string& what) {
    if (count % t == 0) return;
    problems->Add("tensor_parallel",
                  absl::StrFormat("is %d, expected a divisor of the %d %s", t,
                                  count, what));
  };
  for (const BlockSpec& block : BlocksOf(transformer).kinds) {
    if (!block.mixer) continue;
    const uint32_t heads = MixerHeads(block.transformer);
    if (heads != transformer.num_heads()) {
      check(heads, absl::StrCat("heads of each ", block.name));
    }
    if (block.transformer.has_compressed_attention()) {
      check(block.transformer.compressed_attention().output_groups(),
            absl::StrCat("output groups of each ", block.name));
    }
  }
  if (transformer.has_encoder()) {
    check(transformer.encoder().blocks().num_heads(), "heads of the encoder");
  }
}

void CheckOperators(const Transformer& transformer, Problems* problems) {
  const std::string block = BlockWithOtherOperators(transformer);
  if (block.empty()) return;
  problems->Add("recompute",
                absl::StrCat("is of operators, expected none, selective or "
                             "full: each ",
                             block,
                             " has other parts than attention and a "
                             "feed-forward layer"));
}

void CheckExpertParallel(const Transformer& transformer, const WorkSpec& spec,
                         Problems* problems) {
  const int experts = static_cast<int>(transformer.num_experts());
  const int ep = spec.expert_parallel;
  if (experts == 0) {
    if (ep > 1) {
      problems->Add(
          "expert_parallel",
          absl::StrFormat("is %d, expected 1: the model has no experts", ep));
    }
    return;
  }
  if (ep >= 1 && experts % ep != 0) {
    problems->Add("expert_parallel",
                  absl::StrFormat("is %d, expected a divisor of the model's %d "
                                  "experts",
                                  ep, experts));
  }
  const int etp = spec.gpus_per_expert();
  const int width = static_cast<int>(transformer.expert_feed_forward_size());
  if (etp >= 1 && spec.expert_tensor_parallel > 0 && width % etp != 0) {
    problems->Add("expert_tensor_parallel",
                  absl::StrFormat("is %d, expected a divisor of the %d "
                                  "feed-forward units of an expert",
                                  etp, width));
  }
  // Otherwise every GPU of the group would send every token (Megatron-LM
  // rejects this).
  if (spec.tensor_parallel > 1 && !spec.sequence_parallel) {
    problems->Add("sequence_parallel",
                  "is off, expected on: tensor parallelism of a model with "
                  "experts needs it");
  }
}

void CheckContextParallel(const Transformer& transformer, const WorkSpec& spec,
                          Problems* problems) {
  const ContextSpec& context = spec.context;
  if (context.heads_parallel < 1 || context.ring < 1 || context.size() == 1) {
    return;
  }
  if (!spec.flash_attention) {
    problems->Add("flash_attention",
                  "is off, expected on: context parallelism needs fused "
                  "attention");
  }
  if (spec.sequence_length % (2 * context.size()) != 0) {
    problems->Add(
        "sequence_length",
        absl::StrFormat("is %d, expected a multiple of 2 x context %d",
                        spec.sequence_length, context.size()));
  }
  const int kv_heads = static_cast<int>(transformer.num_kv_heads());
  if (context.heads_parallel > 1 &&
      kv_heads % (spec.tensor_parallel * context.heads_parallel) != 0) {
    problems->Add("context.heads_parallel",
                  absl::StrFormat(
                      "is %d, expected that x tensor_parallel %d divides the "
                      "model's %d key-value heads",
                      context.heads_parallel, spec.tensor_parallel, kv_heads));
  }
  if (transformer.sliding_window() > 0 && context.ring > 1 &&
      context.method != CONTEXT_ALL_GATHER) {
    problems->Add(
        "context.method",
        "is a ring, expected all_gather or a2a: the model's attention "
        "has a sliding window");
  }
}

void CheckTransformerSpec(const Transformer& transformer, const WorkSpec& spec,
                          Problems* problems) {
  problems->CheckRange("sequence_length", spec.sequence_length, 1, 1e8);
  const uint32_t positions = transformer.num_positions();
  if (positions != 0 && spec.sequence_length > int64_t{positions}) {
    problems->Add("sequence_length",
                  absl::StrFormat("is %d, expected at most the model's %d "
                                  "positions",
                                  spec.sequence_length, positions));
  }
  if (spec.tensor_parallel >= 1) {
    CheckTensorParallel(transformer, spec.tensor_parallel, problems);
    CheckBlocksDivide(transformer, spec.tensor_parallel, problems);
  }
  if (spec.recompute.mode() == RECOMPUTE_OPERATORS) {
    CheckOperators(transformer, problems);
  }
  CheckExpertParallel(transformer, spec, problems);
  CheckContextParallel(transformer, spec, problems);
}

}  // namespace

absl::Status ValidateWorkSpec(absl::string_view label, const Model& model,
                              const WorkSpec& spec) {
  Problems problems(label);
  problems.CheckRange("microbatch_size", spec.microbatch_size, 1, 1e6);
  problems.CheckRange("tensor_parallel", spec.tensor_parallel, 1, 1e5);
  problems.CheckRange("expert_parallel", spec.expert_parallel, 1, 1e5);
  problems.CheckRange("expert_tensor_parallel", spec.expert_tensor_parallel, 0,
                      1e5);
  problems.CheckRange("expert_load", spec.expert_load, 1, 1e5);
  problems.CheckRange("context.heads_parallel", spec.context.heads_parallel, 1,
                      1e4);
  problems.CheckRange("context.ring", spec.context.ring, 1, 1e4);
  problems.CheckRange("bytes_per_element", spec.bytes_per_element, 1, 8);
  if (model.has_transformer()) {
    CheckTransformerSpec(model.transformer(), spec, &problems);
  } else {
    const auto whole = [&](absl::string_view field, int value) {
      if (value <= 1) return;
      problems.Add(field, absl::StrFormat("is %d, expected 1: the layers of "
                                          "this model were measured whole",
                                          value));
    };
    whole("tensor_parallel", spec.tensor_parallel);
    whole("expert_parallel", spec.expert_parallel);
    whole("context", spec.context.size());
  }
  return problems.ToStatus();
}

}  // namespace weir::models
