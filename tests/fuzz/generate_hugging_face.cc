// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fuzz/generate_model.h"

namespace weir::fuzz {
namespace {

using Json = nlohmann::ordered_json;

struct Family {
  const char* model_type;
  const char* architecture;
  const char *layers, *hidden, *heads, *feed_forward, *positions;
};

constexpr Family kFamilies[] = {
    {"gpt2", "GPT2LMHeadModel", "n_layer", "n_embd", "n_head", "n_inner",
     "n_positions"},
    {"bert", "BertForPreTraining", "num_hidden_layers", "hidden_size",
     "num_attention_heads", "intermediate_size", "max_position_embeddings"},
    {"llama", "LlamaForCausalLM", "num_hidden_layers", "hidden_size",
     "num_attention_heads", "intermediate_size", "max_position_embeddings"},
    {"mistral", "MistralForCausalLM", "num_hidden_layers", "hidden_size",
     "num_attention_heads", "intermediate_size", "max_position_embeddings"},
    {"mixtral", "MixtralForCausalLM", "num_hidden_layers", "hidden_size",
     "num_attention_heads", "intermediate_size", "max_position_embeddings"},
    {"qwen2_moe", "Qwen2MoeForCausalLM", "num_hidden_layers", "hidden_size",
     "num_attention_heads", "intermediate_size", "max_position_embeddings"},
    {"qwen3_moe", "Qwen3MoeForCausalLM", "num_hidden_layers", "hidden_size",
     "num_attention_heads", "intermediate_size", "max_position_embeddings"},
    {"deepseek", "DeepseekForCausalLM", "num_hidden_layers", "hidden_size",
     "num_attention_heads", "intermediate_size", "max_position_embeddings"},
};

class Generator {
 public:
  explicit Generator(Choices* choices) : choices_(*choices) {}

  std::string Generate() {
    const Family& family = kFamilies[choices_.Int(0, 7)];
    config_["model_type"] = family.model_type;
    if (choices_.OneIn(2)) config_["architectures"] = {family.architecture};
    if (choices_.OneIn(2)) config_["_name_or_path"] = choices_.Text();
    const int heads = choices_.Int(1, 64);
    Maybe(family.layers, choices_.Int(1, 64));
    config_[family.heads] = heads;
    config_[family.hidden] = heads * 8 * choices_.Int(1, 16);
    Maybe(family.feed_forward, 8 * choices_.Int(1, 4000));
    Maybe(family.positions, choices_.Int(128, 200000));
    Maybe("vocab_size", choices_.Int(1, 300000));
    Maybe("tie_word_embeddings", choices_.OneIn(2));
    SetAttention(family.model_type, heads);
    SetExperts(family.model_type);
    AddUnknownKeys();
    if (choices_.OneIn(10)) BreakOne();
    return config_.dump(choices_.OneIn(2) ? -1 : 2);
  }

 private:
  // Sets a key with probability 2/3; otherwise it is absent or null.
  template <typename T>
  void Maybe(const char* key, T value) {
    if (!choices_.OneIn(3)) {
      config_[key] = value;
    } else if (choices_.OneIn(3)) {
      config_[key] = nullptr;
    }
  }

  void SetAttention(const std::string& type, int heads) {
    if (type == "gpt2") return;
    if (type == "bert") return Maybe("type_vocab_size", choices_.Int(1, 4));
    // The default of some families may not divide the heads.
    config_["num_key_value_heads"] =
        heads % 4 == 0 && choices_.OneIn(2) ? heads / 4 : heads;
    if (choices_.OneIn(3)) config_["head_dim"] = 8 * choices_.Int(1, 32);
    Maybe("attention_bias", choices_.OneIn(2));
    Maybe("mlp_bias", choices_.OneIn(2));
    if (choices_.OneIn(3)) config_["sliding_window"] = choices_.Int(1, 4096);
    if (choices_.OneIn(3)) {
      config_["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
    }
  }

  void SetExperts(const std::string& type) {
    const int experts = choices_.Of<int>({2, 8, 60, 128});
    const int per_token = choices_.Int(1, 2);
    const int width = 8 * choices_.Int(1, 300);
    if (type == "mixtral") {
      config_["num_local_experts"] = experts;
      config_["num_experts_per_tok"] = per_token;
    } else if (type == "qwen2_moe" || type == "qwen3_moe") {
      config_["num_experts"] = experts;
      config_["num_experts_per_tok"] = per_token;
      config_["moe_intermediate_size"] = width;
      config_["shared_expert_intermediate_size"] = width * choices_.Int(1, 4);
      if (choices_.OneIn(3)) config_["mlp_only_layers"] = {0};
    } else if (type == "deepseek" && choices_.OneIn(2)) {
      config_["n_routed_experts"] = experts;
      config_["num_experts_per_tok"] = per_token;
      config_["moe_intermediate_size"] = width;
      Maybe("n_shared_experts", choices_.Int(1, 3));
      Maybe("moe_layer_freq", 1);
    }
  }

  void AddUnknownKeys() {
    for (int left = choices_.Int(0, 3); left > 0; --left) {
      config_["x_" + choices_.Text()] = AnyValue();
    }
  }

  Json AnyValue() {
    switch (choices_.Int(0, 7)) {
      case 0:
        return choices_.Text();
      case 1:
        return choices_.Int(-5, 5);
      case 2:
        return choices_.Real(-1e30, 1e30);
      case 3:
        return nullptr;
      case 4:
        return true;
      case 5:
        return Json::array({1, "two", nullptr});
      case 6:
        return 18446744073709551615u;
      default:
        return Json::object({{"a", 1}});
    }
  }

  void BreakOne() {
    auto at = config_.begin();
    std::advance(at, choices_.Int(0, static_cast<int>(config_.size()) - 1));
    at.value() = AnyValue();
  }

  Choices& choices_;
  Json config_ = Json::object();
};

}  // namespace

std::string GenerateHuggingFaceConfig(Choices* choices) {
  return Generator(choices).Generate();
}

}  // namespace weir::fuzz
