// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/import/common_fields.h"

namespace weir::models {
namespace {

// Qwen3-Next: three gated delta nets, then gated attention.
void ReadQwenHybrid(Config config, bool experts) {
  auto& [fields, out] = config;
  ReadSizes(config, experts ? nullptr : "intermediate_size");
  fields.Count("intermediate_size", 0);
  ReadAttentionBiases(config, false);
  out->set_query_key_norm(true);
  ExpectFlag(fields, "attn_output_gate", true);
  fields.Text("output_gate_type", "");
  RefuseFlag(fields, "mtp_use_dedicated_embeddings");
  out->set_attention_gate(ATTENTION_GATE_PER_ELEMENT);
  ReadMtpModules(config, fields.Has("mtp_num_hidden_layers")
                             ? "mtp_num_hidden_layers"
                             : "num_nextn_predict_layers");
  if (experts) {
    ReadExperts(config, {"num_experts", "num_experts"},
                {"num_experts_per_tok", "num_experts_per_tok"},
                "moe_intermediate_size");
    ExpectCount(fields, "decoder_sparse_step", 1);
    out->set_num_shared_experts(1);
    out->set_shared_feed_forward_size(
        fields.Count("shared_expert_intermediate_size", 0));
    out->set_shared_expert_gate(true);
  }
  if (!fields.Counts("mlp_only_layers").empty()) {
    fields.Add("mlp_only_layers", "is not empty, expected an empty list");
  }
  NamedKind linear{"linear_attention", KindOf('L', "delta net")};
  DeltaNet& net = *linear.kind.mutable_block()->mutable_delta_net();
  net.set_num_key_heads(RequiredCount(fields, "linear_num_key_heads"));
  net.set_num_value_heads(RequiredCount(fields, "linear_num_value_heads"));
  net.set_key_head_size(RequiredCount(fields, "linear_key_head_dim"));
  net.set_value_head_size(RequiredCount(fields, "linear_value_head_dim"));
  net.set_convolution_size(fields.Count("linear_conv_kernel_dim", 4));
  std::vector<std::string> period(
      std::clamp(fields.Count("full_attention_interval", 4), 1u, 10000u) - 1,
      "linear_attention");
  period.push_back("full_attention");
  ReadPattern(config, "layer_types", period,
              {FullKind("full_attention"), linear});
  if (out->num_mtp_modules() > 0 &&
      out->pattern().find('F') != std::string::npos) {
    out->set_mtp_pattern("F");
  }
}

// Nemotron-H: every layer is one half of a block.
std::vector<NamedKind> NemotronKinds(Config config) {
  auto& [fields, out] = config;
  NamedKind mamba{"mamba", KindOf('M', "Mamba-2")};
  mamba.kind.set_feed_forward(FEED_FORWARD_NONE);
  Mamba2& sizes = *mamba.kind.mutable_block()->mutable_mamba2();
  sizes.set_num_heads(RequiredCount(fields, "mamba_num_heads"));
  sizes.set_head_size(RequiredCount(fields, "mamba_head_dim"));
  sizes.set_state_size(RequiredCount(fields, "ssm_state_size"));
  sizes.set_num_groups(RequiredCount(fields, "n_groups"));
  sizes.set_convolution_size(fields.Count("conv_kernel", 4));
  sizes.set_convolution_bias(fields.Flag("use_conv_bias", true));
  sizes.set_chunk_size(fields.Count("chunk_size", 0));
  NamedKind attention{"attention", KindOf('*', "attention")};
  attention.kind.set_feed_forward(FEED_FORWARD_NONE);
  NamedKind experts{"moe", KindOf('E', "mixture")};
  experts.kind.set_feed_forward(FEED_FORWARD_EXPERTS);
  experts.kind.set_no_mixer(true);
  NamedKind dense{"mlp", KindOf('-', "feed-forward")};
  dense.kind.set_feed_forward(FEED_FORWARD_DENSE);
  dense.kind.set_no_mixer(true);
  return {mamba, attention, experts, dense};
}

// Reads the types of layers from a list, or from a string of their letters.
std::vector<std::string> NemotronTypes(Config config, const char* list,
                                       const char* letters,
                                       const std::vector<NamedKind>& kinds) {
  std::vector<std::string> types = config.fields.Texts(list);
  for (const char letter : config.fields.Text(letters, "")) {
    const auto at =
        std::find_if(kinds.begin(), kinds.end(), [&](const NamedKind& named) {
          return named.kind.letter()[0] == letter;
        });
    types.push_back(at == kinds.end() ? std::string(1, letter) : at->type);
  }
  return types;
}

void ReadNemotronH(Config config) {
  auto& [fields, out] = config;
  const std::vector<NamedKind> kinds = NemotronKinds(config);
  const std::vector<std::string> types = NemotronTypes(
      config, "layers_block_type", "hybrid_override_pattern", kinds);
  const std::vector<std::string> mtp = NemotronTypes(
      config, "mtp_layers_block_type", "mtp_hybrid_override_pattern", kinds);
  out->set_num_layers(
      fields.Count("num_hidden_layers", static_cast<uint32_t>(types.size())));
  out->set_hidden_size(RequiredCount(fields, "hidden_size"));
  out->set_num_heads(RequiredCount(fields, "num_attention_heads"));
  out->set_num_kv_heads(fields.Count("num_key_value_heads", 0));
  out->set_head_size(CountOf(fields, {"head_dim", "attention_head_dim"}, 0));
  out->set_feed_forward_size(fields.Count("intermediate_size", 0));
  out->set_vocabulary_size(RequiredCount(fields, "vocab_size"));
  out->set_default_sequence_length(8192);
  out->set_tied_embeddings(fields.Flag("tie_word_embeddings", false));
  out->set_rms_norm(true);
  out->set_causal(true);
  out->set_no_rotation(true);
  ReadActivation(config, "mlp_hidden_act", "relu2");
  fields.Text("mamba_hidden_act", "silu");
  fields.Count("expand", 0);  // the number of heads says the same
  ReadAttentionBiases(config, false);
  for (const char* key : {"use_bias", "mamba_proj_bias", "mlp_bias"}) {
    ExpectFlag(fields, key, false);
  }
  ExpectCount(fields, "sliding_window", 0);
  if (fields.Has("n_routed_experts")) {
    ReadExperts(config, {"n_routed_experts", "num_experts"},
                {"num_experts_per_tok", "num_experts_per_tok"},
                "moe_intermediate_size");
    out->set_num_shared_experts(fields.Count("n_shared_experts", 0));
    const uint32_t shared =
        fields.Count("moe_shared_expert_intermediate_size", 0);
    if (out->num_shared_experts() > 0) {
      out->set_shared_feed_forward_size(out->num_shared_experts() * shared);
    }
    out->set_expert_hidden_size(fields.Count("moe_latent_size", 0));
  }
  SetPattern(config,
             fields.Has("layers_block_type") ? "layers_block_type"
                                             : "hybrid_override_pattern",
             types, kinds);
  ReadMtpModules(config);
  if (out->num_mtp_modules() == 0) return;
  std::string pattern;
  for (const std::string& type : mtp) {
    for (const BlockKind& kind : out->kinds()) {
      const bool same =
          std::any_of(kinds.begin(), kinds.end(), [&](const NamedKind& named) {
            return named.type == type && named.kind.letter() == kind.letter();
          });
      if (same) pattern += kind.letter();
    }
  }
  if (pattern.size() != mtp.size()) {
    fields.Add("mtp_layers_block_type",
               "has a type that no layer has, expected types of layers");
  }
  out->set_mtp_pattern(pattern);
}

// MiniMax-01 and M1: lightning attention, with full attention in every eighth
// layer; a mixture of experts in each.
void ReadMiniMax01(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config, nullptr);
  ReadExperts(config, {"num_local_experts", "num_experts"},
              {"num_experts_per_tok", "num_experts_per_tok"},
              "intermediate_size");
  ExpectCount(fields, "shared_intermediate_size", 0);
  ExpectCount(fields, "num_mtp_modules", 0);
  fields.Mentions("postnorm");  // the same number of norms
  NamedKind full = FullKind("full_attention");
  NamedKind linear{"linear_attention", KindOf('L', "lightning")};
  linear.kind.mutable_block()->mutable_lightning_attention()->set_chunk_size(
      fields.Count("block_size", 256));
  std::vector<std::string> types;
  for (const uint32_t type : fields.Counts("attn_type_list")) {
    types.push_back(type == 0 ? linear.type : full.type);
  }
  if (types.empty()) {
    ReadPattern(config, "layer_types", {linear.type, full.type},
                {full, linear});
  } else {
    SetPattern(config, "attn_type_list", types, {full, linear});
  }
}

}  // namespace

void ReadQwen35(Config config) { ReadQwenHybrid(config, false); }
void ReadQwen35Moe(Config config) { ReadQwenHybrid(config, true); }

// Kimi Linear and K3: Kimi delta attention, with latent attention in the layers
// that full_attn_layers lists.
void ReadKimiLinear(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  fields.Count("head_dim", 0);
  out->set_num_kv_heads(0);
  ReadExperts(config, {"num_experts", "n_routed_experts"},
              {"num_experts_per_token", "num_experts_per_tok"},
              "moe_intermediate_size");
  out->set_num_shared_experts(fields.Count("num_shared_experts", 0));
  out->set_num_dense_blocks(fields.Count("first_k_dense_replace", 0));
  ExpectCount(fields, "moe_layer_freq", 1);
  out->set_expert_hidden_size(fields.Count("routed_expert_hidden_size", 0));
  out->set_expert_hidden_norm(fields.Flag("latent_moe_use_norm", false));
  out->set_residual_block(fields.Count("attn_res_block_size", 0));
  ReadMtpModules(config);

  NamedKind full = FullKind("full");
  Transformer& block = *full.kind.mutable_block();
  LatentAttention& latent = *block.mutable_latent_attention();
  latent.set_query_rank(fields.Count("q_lora_rank", 0));
  latent.set_key_value_rank(RequiredCount(fields, "kv_lora_rank"));
  latent.set_plain_head_size(RequiredCount(fields, "qk_nope_head_dim"));
  latent.set_rotary_head_size(RequiredCount(fields, "qk_rope_head_dim"));
  latent.set_value_head_size(RequiredCount(fields, "v_head_dim"));
  out->set_head_size(latent.plain_head_size() + latent.rotary_head_size());
  fields.Flag("mla_use_nope", false);  // the rotary part is not rotated
  if (fields.Flag("mla_use_output_gate", false)) {
    block.set_attention_gate(ATTENTION_GATE_PER_ELEMENT);
  }

  const nlohmann::json* found = fields.Object("linear_attn_config");
  if (found == nullptr) {
    fields.Add("linear_attn_config", "is missing, expected an object");
    return;
  }
  JsonFields linear = fields.Inside(*found, "linear_attn_config.");
  NamedKind delta{"linear", KindOf('K', "Kimi delta")};
  DeltaNet& net = *delta.kind.mutable_block()->mutable_delta_net();
  net.set_num_key_heads(RequiredCount(linear, "num_heads"));
  net.set_key_head_size(RequiredCount(linear, "head_dim"));
  net.set_convolution_size(linear.Count("short_conv_kernel_size", 4));
  net.set_channel_decay(true);
  if (!linear.Flag("use_full_rank_gate", false)) {
    net.set_gate_rank(net.key_head_size());
  }
  std::vector<std::string> types(std::min(out->num_layers(), 20000u));
  for (const auto& [key, type] : {std::pair("full_attn_layers", "full"),
                                  std::pair("kda_layers", "linear")}) {
    for (const uint32_t layer : linear.Counts(key)) {
      if (layer >= 1 && layer <= types.size()) types[layer - 1] = type;
    }
  }
  linear.CheckUnknown();
  SetPattern(config, "linear_attn_config.full_attn_layers", types,
             {full, delta});
}

std::vector<Family> HybridFamilies() {
  return {
      {.model_type = "kimi_linear",
       .architectures = {"KimiLinearForCausalLM"},
       .read = ReadKimiLinear},
      {.model_type = "minimax",
       .architectures = {"MiniMaxForCausalLM"},
       .read = ReadMiniMax01,
       .names = {{"num_experts", "num_local_experts"}}},
      {.model_type = "minimax_m1",
       .architectures = {"MiniMaxM1ForCausalLM"},
       .read = ReadMiniMax01,
       .names = {{"num_experts", "num_local_experts"}}},
      {.model_type = "minimax_text_01",
       .architectures = {"MiniMaxText01ForCausalLM"},
       .read = ReadMiniMax01,
       .names = {{"num_experts", "num_local_experts"}}},
      {.model_type = "nemotron_h",
       .architectures = {"NemotronHForCausalLM"},
       .read = ReadNemotronH,
       .names = {{"num_experts", "n_routed_experts"}}},
      {.model_type = "qwen3_5_moe_text",
       .architectures = {"Qwen3_5MoeForCausalLM"},
       .read = ReadQwen35Moe},
      {.model_type = "qwen3_5_text",
       .architectures = {"Qwen3_5ForCausalLM"},
       .read = ReadQwen35},
      {.model_type = "qwen3_next",
       .architectures = {"Qwen3NextForCausalLM"},
       .read = ReadQwen35Moe},
  };
}

}  // namespace weir::models
