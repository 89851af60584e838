// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "models/import/common_fields.h"

namespace weir::models {
namespace {

void ReadLlama(Config config) {
  ReadLlamaLike({}, config);
  ReadAttentionBiases(config, false);
  config.out->set_feed_forward_bias(config.fields.Flag("mlp_bias", false));
}

void ReadMistral(Config config) {
  auto& [fields, out] = config;
  // Null, unlike absence, means one key-value head per query head.
  const bool absent = !fields.Mentions("num_key_value_heads");
  ReadLlamaLike({.feed_forward_size = 14336,
                 .num_kv_heads = absent ? 8u : 0u,
                 .max_positions = 131072},
                config);
  out->set_sliding_window(fields.Count(
      "sliding_window", fields.Mentions("sliding_window") ? 0 : 4096));
}

// Reads the windows of Qwen2 and Qwen3: of all layers from max_window_layers
// on.
void ReadQwenWindows(Config config) {
  auto& [fields, out] = config;
  const uint32_t window = fields.Count("sliding_window", 0);
  const uint32_t first = fields.Count("max_window_layers", 28);
  const bool used = fields.Flag("use_sliding_window", false) && window > 0;
  std::vector<std::string> types = fields.Texts("layer_types");
  for (uint32_t i = 0; types.size() < std::min(out->num_layers(), 20000u) &&
                       !fields.Has("layer_types");
       ++i) {
    types.push_back(used && i >= first ? "sliding_attention"
                                       : "full_attention");
  }
  SetPattern(
      config, "layer_types", types,
      {FullKind("full_attention"), SlidingKind("sliding_attention", window)});
}

void ReadQwen2(Config config) {
  ReadLlamaLike({.feed_forward_size = 22016,
                 .num_kv_heads = 32,
                 .max_positions = 32768,
                 .vocabulary_size = 151936},
                config);
  ExpectFlag(config.fields, "attention_bias", true);
  config.out->set_attention_bias(true);
  ReadQwenWindows(config);
}

// Xiaomi's MiMo: Qwen2 with MTP modules.
void ReadMimo(Config config) {
  ReadQwen2(config);
  ReadMtpModules(config);
}

void ReadPhi(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  RefuseFlag(fields, "qk_layernorm");
  out->set_gated_feed_forward(false);
  ReadActivation(config, "hidden_act", "gelu_new");
  out->set_rms_norm(false);
  out->set_parallel_block(true);
  out->set_attention_bias(true);
  out->set_attention_output_bias(true);
  out->set_feed_forward_bias(true);
  out->set_head_bias(true);
}

void ReadPhi3(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  ExpectFlag(fields, "attention_bias", false);
  ExpectFlag(fields, "mlp_bias", false);
  ExpectFlag(fields, "lm_head_bias", false);
  out->set_sliding_window(fields.Count("sliding_window", 0));
}

void ReadOlmo(Config config) {
  ReadSizes(config);
  ReadAttentionBiases(config, false);
  config.out->set_plain_norms(true);
}

// The norms are after each half of a block instead of before it, which takes
// the same work.
void ReadOlmo2(Config config) {
  ReadSizes(config);
  ReadAttentionBiases(config, false);
  config.out->set_query_key_norm(true);
  config.out->set_wide_query_key_norm(true);
}

void ReadOlmo3(Config config) {
  ReadOlmo2(config);
  ReadWindows(config, 4);
}

void ReadGemma(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config, "intermediate_size", /*tied=*/true);
  ReadAttentionBiases(config, false);
  if (!fields.Has("head_dim")) out->set_head_size(256);
  const char* key =
      fields.Has("hidden_activation") ? "hidden_activation" : "hidden_act";
  fields.Text("hidden_act", "");
  ReadActivation(config, key, "gelu_pytorch_tanh");
}

void ReadGemma2(Config config) {
  ReadGemma(config);
  config.out->set_extra_norms(2);
  ReadWindows(config, 2);
}

void ReadGlm(Config config) {
  ReadSizes(config);
  config.out->set_attention_bias(config.fields.Flag("attention_bias", false));
}

void ReadGlm4(Config config) {
  ReadGlm(config);
  config.out->set_extra_norms(2);
}

void ReadNemotron(Config config) {
  auto& [fields, out] = config;
  ReadSizes(config);
  out->set_gated_feed_forward(false);
  ReadActivation(config, "hidden_act", "relu2");
  out->set_rms_norm(false);
  ReadAttentionBiases(config, false);
  out->set_feed_forward_bias(fields.Flag("mlp_bias", false));
}

constexpr absl::string_view kKindLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// Reads one of block_configs: attention and feed-forward layer of a block that
// architecture search has chosen.
NamedKind ReadSearchedBlock(Config config, const std::string& path,
                            const nlohmann::json& block, int number) {
  JsonFields fields = config.fields.Inside(block, path);
  const auto part = [&](const char* key) {
    const nlohmann::json* found = fields.Object(key);
    return found == nullptr ? nlohmann::json::object() : *found;
  };
  const nlohmann::json attention_json = part("attention");
  const nlohmann::json feed_forward_json = part("ffn");
  JsonFields attention = fields.Inside(attention_json, "attention.");
  JsonFields feed_forward = fields.Inside(feed_forward_json, "ffn.");
  for (JsonFields* half : {&attention, &feed_forward}) {
    RefuseFlag(*half, "replace_with_linear");
    if (half->Object("sparsify") != nullptr) {
      half->Add("sparsify", "is given, expected null");
    }
  }
  const uint32_t group = attention.Count("n_heads_in_group", 1);
  ExpectCount(attention, "window_length", 0);
  ExpectCount(attention, "num_sink_tokens", 0);
  NamedKind named;
  const bool no_attention = attention.Flag("no_op", false);
  const bool no_feed_forward = feed_forward.Flag("no_op", false);
  named.kind.set_no_mixer(no_attention);
  named.kind.set_feed_forward(no_feed_forward ? FEED_FORWARD_NONE
                                              : FEED_FORWARD_DENSE);
  const double multiple = feed_forward.Number("ffn_mult", 0);
  // Two thirds of the multiple, rounded up to 256.
  const double width =
      256 *
      std::ceil(std::floor(2 * multiple * config.out->hidden_size() / 3) / 256);
  if (!no_attention && group > 0) {
    named.kind.mutable_block()->set_num_kv_heads(config.out->num_heads() /
                                                 group);
  }
  if (!no_feed_forward) {
    if (!(width >= 1 && width <= 1e7)) {
      feed_forward.Add("ffn_mult", absl::StrCat("is ", multiple,
                                                ", expected a number above 0"));
    } else {
      named.kind.mutable_block()->set_feed_forward_size(
          static_cast<uint32_t>(width));
    }
  }
  named.type = absl::StrCat(no_attention ? "no attention" : "attention",
                            no_feed_forward ? "" : absl::StrCat(" ", width));
  named.kind.set_name(named.type);
  named.kind.set_letter(
      std::string(1, kKindLetters[number % kKindLetters.size()]));
  return named;
}

// Puzzle models (Nemotron-NAS, DeciLM).
void ReadSearched(Config config) {
  auto& [fields, out] = config;
  const std::vector<const nlohmann::json*> blocks =
      fields.Objects("block_configs");
  ReadSizes(config, nullptr);
  out->set_num_kv_heads(0);
  fields.Count("intermediate_size", 0);
  ReadAttentionBiases(config, false);
  ExpectFlag(fields, "mlp_bias", false);
  std::vector<std::string> types;
  std::vector<NamedKind> kinds;
  for (size_t i = 0; i < blocks.size() && kinds.size() < kKindLetters.size();
       ++i) {
    NamedKind named =
        ReadSearchedBlock(config, absl::StrCat("block_configs[", i, "]."),
                          *blocks[i], static_cast<int>(kinds.size()));
    types.push_back(named.type);
    const bool known = std::any_of(
        kinds.begin(), kinds.end(),
        [&](const NamedKind& other) { return other.type == named.type; });
    if (!known) kinds.push_back(std::move(named));
  }
  SetPattern(config, "block_configs", types, kinds);
}

}  // namespace

void ReadQwen3(Config config) {
  ReadLlamaLike({.feed_forward_size = 22016,
                 .num_kv_heads = 32,
                 .max_positions = 32768,
                 .vocabulary_size = 151936,
                 .head_size = 128},
                config);
  ReadAttentionBiases(config, false);
  config.out->set_query_key_norm(true);
  ReadQwenWindows(config);
}

void ReadGemma3(Config config) {
  auto& [fields, out] = config;
  ReadGemma(config);
  out->set_extra_norms(2);
  out->set_query_key_norm(true);
  ReadWindows(
      config,
      CountOf(fields, {"sliding_window_pattern", "_sliding_window_pattern"},
              6));
}

std::vector<Family> DenseFamilies() {
  return {
      {.model_type = "gemma",
       .architectures = {"GemmaForCausalLM"},
       .read = ReadGemma},
      {.model_type = "gemma2",
       .architectures = {"Gemma2ForCausalLM"},
       .read = ReadGemma2},
      {.model_type = "gemma3_text",
       .architectures = {"Gemma3ForCausalLM"},
       .read = ReadGemma3},
      {.model_type = "glm",
       .architectures = {"GlmForCausalLM"},
       .read = ReadGlm},
      {.model_type = "glm4",
       .architectures = {"Glm4ForCausalLM"},
       .read = ReadGlm4},
      {.model_type = "llama",
       .architectures = {"LlamaForCausalLM"},
       .read = ReadLlama},
      {.model_type = "mimo",
       .architectures = {"MiMoForCausalLM"},
       .read = ReadMimo},
      {.model_type = "mistral",
       .architectures = {"MistralForCausalLM"},
       .read = ReadMistral},
      {.model_type = "nemotron",
       .architectures = {"NemotronForCausalLM"},
       .read = ReadNemotron},
      {.model_type = "nemotron-nas",
       .architectures = {"DeciLMForCausalLM"},
       .read = ReadSearched},
      {.model_type = "olmo",
       .architectures = {"OlmoForCausalLM"},
       .read = ReadOlmo},
      {.model_type = "olmo2",
       .architectures = {"Olmo2ForCausalLM"},
       .read = ReadOlmo2},
      {.model_type = "olmo3",
       .architectures = {"Olmo3ForCausalLM"},
       .read = ReadOlmo3},
      {.model_type = "phi",
       .architectures = {"PhiForCausalLM"},
       .read = ReadPhi},
      {.model_type = "phi3",
       .architectures = {"Phi3ForCausalLM"},
       .read = ReadPhi3},
      {.model_type = "qwen2",
       .architectures = {"Qwen2ForCausalLM"},
       .read = ReadQwen2},
      {.model_type = "qwen3",
       .architectures = {"Qwen3ForCausalLM"},
       .read = ReadQwen3},
  };
}

}  // namespace weir::models
