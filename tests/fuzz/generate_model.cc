// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/generate_model.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/assets.h"
#include "models/context_parallel.h"
#include "models/model.h"
#include "models/recipe.h"

namespace weir::fuzz {
namespace {

constexpr int kMostLayers = 48;

MeasuredLayer GenerateLayer(Choices* choices) {
  MeasuredLayer layer;
  layer.set_name(choices->Text());
  layer.set_forward_seconds(choices->LogReal(1e-9, 10));
  layer.set_backward_seconds(choices->OneIn(8) ? 0
                                               : choices->LogReal(1e-9, 1e6));
  layer.set_activation_bytes(choices->LogReal(1, 1e12));
  layer.set_parameter_bytes(choices->OneIn(4) ? 0 : choices->LogReal(1, 1e12));
  if (choices->OneIn(3)) layer.set_cut_bytes(choices->LogReal(1, 1e12));
  return layer;
}

void SetExperts(Transformer* out, Choices* choices) {
  out->set_num_experts(choices->Of<uint32_t>({2, 4, 8, 64}));
  out->set_experts_per_token(choices->Int(1, 2));
  if (choices->OneIn(2)) {
    out->set_expert_feed_forward_size(16 * choices->Int(1, 100));
  }
  if (choices->OneIn(3)) out->set_num_shared_experts(choices->Int(1, 4));
  out->set_shared_expert_gate(choices->OneIn(4));
  if (choices->OneIn(3)) {
    out->set_num_dense_blocks(
        choices->Int(0, static_cast<int>(out->num_layers())));
  }
  if (choices->OneIn(4)) out->set_expert_block_interval(choices->Int(1, 3));
  if (choices->OneIn(4)) out->set_capacity_factor(choices->Real(0.5, 4));
}

// Sets what mixes the tokens of a block with `heads` heads.
void SetMixer(Transformer* out, int heads, Choices* choices) {
  const auto size = [&] { return 8u * choices->Int(1, 16); };
  switch (choices->Int(0, 5)) {
    case 0: {
      LatentAttention& latent = *out->mutable_latent_attention();
      latent.set_query_rank(choices->OneIn(2) ? size() : 0);
      latent.set_key_value_rank(size());
      latent.set_plain_head_size(size());
      latent.set_rotary_head_size(size());
      latent.set_value_head_size(size());
      break;
    }
    case 1: {
      CompressedAttention& compressed = *out->mutable_compressed_attention();
      compressed.set_query_rank(size());
      compressed.set_output_groups(heads);
      compressed.set_output_rank(size());
      compressed.set_ratio(choices->Of<uint32_t>({0, 4, 128}));
      compressed.set_overlap(choices->OneIn(2));
      out->set_sliding_window(choices->Int(1, 512));
      break;
    }
    case 2: {
      Mamba2& mamba = *out->mutable_mamba2();
      mamba.set_num_heads(heads);
      mamba.set_head_size(size());
      mamba.set_state_size(size());
      mamba.set_num_groups(choices->OneIn(2) ? heads : 1);
      mamba.set_convolution_size(4);
      break;
    }
    case 3: {
      DeltaNet& net = *out->mutable_delta_net();
      net.set_num_key_heads(heads);
      net.set_num_value_heads(choices->OneIn(2) ? 2 * heads : 0);
      net.set_key_head_size(size());
      net.set_channel_decay(choices->OneIn(2));
      net.set_gate_rank(choices->OneIn(2) ? size() : 0);
      break;
    }
    case 4:
      out->mutable_lightning_attention();
      break;
    default:
      out->set_attention_gate(choices->Of<AttentionGate>(
          {ATTENTION_GATE_NONE, ATTENTION_GATE_PER_ELEMENT,
           ATTENTION_GATE_PER_HEAD}));
      out->set_keys_are_values(choices->OneIn(4));
      out->set_value_head_size(choices->OneIn(4) ? size() : 0);
      break;
  }
  if (out->has_mamba2() || out->has_delta_net()) return;
  if (!choices->OneIn(4)) return;
  SparseIndex& index = *out->mutable_sparse_index();
  index.set_num_heads(choices->Int(1, 8));
  index.set_head_size(size());
  index.set_num_keys(choices->Int(1, 4096));
  index.set_shared(choices->OneIn(4));
}

// Sets fields that describe more than GPT-2, Llama and Mixtral.
void SetVariants(Transformer* out, int heads, Choices* choices) {
  if (choices->OneIn(2)) SetMixer(out, heads, choices);
  out->set_extra_norms(choices->Int(0, 2));
  out->set_parallel_block(choices->OneIn(4));
  out->set_attention_sinks(choices->OneIn(4));
  if (choices->OneIn(4)) out->set_residual_streams(choices->Int(1, 4));
  if (choices->OneIn(8)) out->set_residual_block(choices->Int(1, 12));
  if (out->num_experts() > 0 && choices->OneIn(2)) {
    out->set_expert_hidden_size(8 * choices->Int(1, 64));
    out->set_expert_bias(choices->OneIn(2));
  }
  if (choices->OneIn(2)) {
    BlockKind& kind = *out->add_kinds();
    kind.set_letter("A");
    kind.set_no_mixer(choices->OneIn(3));
    BlockKind& other = *out->add_kinds();
    other.set_letter("B");
    other.set_name("other");
    if (choices->OneIn(3)) other.set_feed_forward(FEED_FORWARD_NONE);
    if (choices->OneIn(2)) SetMixer(other.mutable_block(), heads, choices);
    out->set_pattern(choices->OneIn(2) ? "AB" : "ABB");
  }
  if (choices->OneIn(4)) out->set_num_mtp_modules(choices->Int(1, 3));
  if (!choices->OneIn(4)) return;
  Encoder& encoder = *out->mutable_encoder();
  encoder.mutable_blocks()->set_num_layers(choices->Int(1, 8));
  encoder.mutable_blocks()->set_num_heads(heads);
  encoder.mutable_blocks()->set_hidden_size(8 * heads);
  encoder.set_patch_elements(choices->Int(1, 1000));
  encoder.set_patches_per_image(choices->Int(1, 4096));
  encoder.set_patches_per_token(choices->Int(0, 4));
  encoder.set_projector_size(choices->Int(0, 1000));
}

void SetTransformer(Transformer* out, Choices* choices) {
  const int heads = choices->Int(1, 32);
  out->set_num_layers(choices->Int(1, kMostLayers));
  out->set_num_heads(heads);
  out->set_hidden_size(heads * 8 * choices->Int(1, 16));
  if (choices->OneIn(3)) {
    out->set_num_kv_heads(heads % 4 == 0 ? heads / 4 : 1);
  }
  if (choices->OneIn(4)) out->set_head_size(8 * choices->Int(1, 32));
  if (choices->OneIn(3)) out->set_feed_forward_size(choices->Int(1, 40000));
  out->set_vocabulary_size(choices->OneIn(8) ? 100000000
                                             : choices->Int(1, 200000));
  if (choices->OneIn(2)) out->set_num_positions(choices->Int(128, 8192));
  if (choices->OneIn(4)) out->set_num_token_types(choices->Int(1, 4));
  if (choices->OneIn(4)) out->set_sliding_window(choices->Int(1, 4096));
  if (choices->OneIn(4)) {
    out->set_default_sequence_length(choices->Int(1, 128));
  }
  out->set_gated_feed_forward(choices->OneIn(2));
  out->set_rms_norm(choices->OneIn(2));
  out->set_attention_bias(choices->OneIn(2));
  out->set_attention_output_bias(choices->OneIn(2));
  out->set_feed_forward_bias(choices->OneIn(2));
  out->set_tied_embeddings(choices->OneIn(2));
  out->set_causal(choices->OneIn(2));
  out->set_post_norm(choices->OneIn(3));
  out->set_embedding_norm(choices->OneIn(3));
  out->set_mlm_head(choices->OneIn(3));
  out->set_pooler(choices->OneIn(3));
  out->set_query_key_norm(choices->OneIn(3));
  out->set_next_sentence_head(choices->OneIn(4));
  if (choices->OneIn(4)) SetExperts(out, choices);
  if (choices->OneIn(3)) SetVariants(out, heads, choices);
  if (choices->OneIn(16)) out->set_num_heads(heads + 1);
}

}  // namespace

Model GenerateModel(Choices* choices) {
  Model model;
  model.set_name(choices->Text());
  if (choices->OneIn(3)) {
    MeasuredModel* measured = model.mutable_measured();
    measured->set_microbatch_size(choices->Int(0, 64));
    for (int left = choices->Int(1, kMostLayers); left > 0; --left) {
      *measured->add_layers() = GenerateLayer(choices);
    }
    if (choices->OneIn(16)) {
      measured->mutable_layers(0)->set_forward_seconds(-1);
    }
  } else {
    SetTransformer(model.mutable_transformer(), choices);
  }
  return model;
}

// Generates numbers in any order and edges from any node to any later one.
std::string GenerateProfileGraph(Choices* choices) {
  const int num_nodes = choices->Int(1, 24);
  std::vector<int> numbers;
  for (int i = 0; i < num_nodes; ++i) numbers.push_back(i + 1);
  if (choices->OneIn(3)) choices->Shuffle(&numbers);
  std::string text;
  for (const int number : numbers) {
    absl::StrAppend(&text, "node", number, " -- ",
                    choices->OneIn(8) ? "Input" : "Conv2d(3, 64)",
                    " -- forward_compute_time=", choices->Real(0, 100),
                    ", backward_compute_time=", choices->Real(0, 100),
                    ", activation_size=");
    if (choices->OneIn(4)) {
      absl::StrAppend(&text, "[", choices->Int(0, 9999), "; ",
                      choices->Int(0, 9999), "]");
    } else {
      absl::StrAppend(&text, choices->Int(0, 1 << 30));
    }
    absl::StrAppend(&text, ", parameter_size=", choices->Int(0, 1 << 30),
                    choices->OneIn(4) ? " -- stage_id=1\n" : "\n");
  }
  const bool cyclic = choices->OneIn(16);
  for (int from = 1; from <= num_nodes; ++from) {
    for (int left = choices->Int(0, 3); left > 0 && from < num_nodes; --left) {
      absl::StrAppend(&text, "\tnode", from, " -- node",
                      choices->Int(cyclic ? 1 : from + 1, num_nodes), "\n");
    }
  }
  return text;
}

models::WorkSpec GenerateWorkSpec(const Model& model, Choices* choices) {
  models::WorkSpec spec;
  spec.microbatch_size = choices->OneIn(16) ? 1000000 : choices->Int(1, 64);
  spec.recompute = choices->Of<RecomputeMode>(
      {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL});
  if (model.has_measured()) {
    if (spec.recompute == RECOMPUTE_SELECTIVE) {
      spec.recompute = RECOMPUTE_FULL;
    }
    return spec;
  }
  spec.sequence_length = static_cast<int>(models::DefaultSequenceLength(model));
  const auto heads = static_cast<int>(model.transformer().num_heads());
  const int t = choices->Of<int>({1, 2, 4, heads});
  spec.tensor_parallel = heads % t == 0 ? t : 1;
  spec.sequence_parallel =
      spec.tensor_parallel > 1 && spec.sequence_length % t == 0;
  for (bool* flag :
       {&spec.flash_attention, &spec.dropout, &spec.tensor_async,
        &spec.fused_softmax, &spec.fused_bias_gelu,
        &spec.fused_bias_dropout_add, &spec.fused_gradient_accumulation,
        &spec.fused_cross_entropy, &spec.gelu_epilogue,
        &spec.fused_residual_norm, &spec.in_place_cross_entropy,
        &spec.fused_embedding, &spec.residual_dropout_only, &spec.int32_tokens,
        &spec.early_release}) {
    *flag = choices->OneIn(2);
  }
  spec.bytes_per_element = choices->Of<int>({2, 4});
  spec.gradient_bytes = choices->Of<int>({2, 4});
  const auto experts = static_cast<int>(model.transformer().num_experts());
  if (experts > 0 && choices->OneIn(2)) spec.expert_parallel = experts;
  if (choices->OneIn(4)) {
    spec.context = models::ContextSpecOf(
        choices->Of<ContextMethod>(
            {CONTEXT_P2P, CONTEXT_ALL_GATHER, CONTEXT_A2A}),
        choices->Of<int>({1, 2, 3, 4}), {});
  }
  spec.vocabulary_multiple = choices->Of<int>({0, 1, 128});
  if (choices->OneIn(4)) {
    const std::vector<std::string> recipes = ListAssets("models/recipes");
    const auto recipe = models::LoadRecipe(
        recipes[choices->Int(0, static_cast<int>(recipes.size()) - 1)]);
    if (recipe.ok()) {
      spec.quantization = models::QuantizationOf(*recipe, choices->OneIn(2));
      spec.quantization.first_blocks = choices->Int(0, 2);
    }
  }
  return spec;
}

}  // namespace weir::fuzz
