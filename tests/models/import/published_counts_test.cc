// SPDX-License-Identifier: Apache-2.0
// Configurations of every family with the sizes that their publishers state,
// and the published numbers of parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/model.h"

namespace weir::models::published_counts_test {

struct Published {
  const char* name;
  // Total, active without the token table if `table` is false; in billions. 0:
  // not published.
  double total = 0;
  double active = 0;
  bool table = true;
  double mtp = 0;
  const char* config = "";  // "": a preset of this name
  // Published numbers are rounded; besides 0.5 % they may be off by this many
  // billions.
  double rounding = 0;
};
void PrintTo(const Published& published, std::ostream* out) {
  *out << published.name;
}

class PublishedTest : public testing::TestWithParam<Published> {};

TEST_P(PublishedTest, CountsAgree) {
  const Published& expected = GetParam();
  const auto model = expected.config[0] == '\0'
                         ? LoadModel(expected.name)
                         : ParseModel("config.json", expected.config);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto near = [&](double found, double published, const char* what) {
    if (published == 0) return;
    EXPECT_NEAR(found / 1e9, published, 0.005 * published + expected.rounding)
        << what;
  };
  near(CountParameters(*model), expected.total, "total");
  near(CountActiveParameters(*model) -
           (expected.table ? 0 : CountTableParameters(*model)),
       expected.active, "active");
  near(CountMtpParameters(*model), expected.mtp, "MTP");
}

// Sources are the model cards unless noted.
const Published kPresets[] = {
    // "The Llama 3 Herd of Models", from the shapes of the checkpoints.
    {"llama-3.1-8b", 8.030},
    {"llama-3.1-70b", 70.554},
    {"llama-3.1-405b", 405.85},
    {"qwen2.5-72b", 72.7},
    {"qwen3-8b", 8.2},
    {"qwen3-32b", 32.8},
    {"qwen3-30b-a3b", 30.5, 3.3, true, 0, "", 0.05},
    {"qwen3-235b-a22b", 235, 22, true, 0, "", 0.1},
    // DeepSeek-V3 technical report, section 4.2; the checkpoint has 14 billion
    // more for MTP, with copies of the embedding and the head (1.85).
    {"deepseek-v3", 671, 37, false, 14 - 1.85, "", 0.5},
    // The sum of the tensors of the checkpoint. The technical report says
    // 1,040: it counts experts in all 61 layers. Active: table 2 says 32.6.
    {"kimi-k2", 1026.4, 32.6, true, 0, "", 0.1},
    // gpt-oss model card, table 1: without the embedding if active.
    {"gpt-oss-20b", 20.91, 3.61, false},
    {"gpt-oss-120b", 116.83, 5.13, false},
    {"mixtral-8x22b", 140.6, 39.1},
    {"llama-4-scout", 109, 17, true, 0, "", 0.2},
    {"llama-4-maverick", 400, 17, true, 0, "", 0.1},
    {"nemotron-4-340b", 340, 0, true, 0, "", 0.5},
    // Gemma 3 technical report, table 1: 417 million in the encoder, 1,416
    // million in the embedding, 25,600 million in the rest.
    {"gemma-3-27b", 27.433, 27.016},
};
INSTANTIATE_TEST_SUITE_P(Presets, PublishedTest, testing::ValuesIn(kPresets));

const Published kDense[] = {
    // Shapes of the checkpoints: 494,032,768 and 1,543,714,304.
    {"Qwen2.5-0.5B", 0.494033, 0, true, 0, R"({"model_type": "qwen2",
      "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
      "num_attention_heads": 14, "num_key_value_heads": 2,
      "vocab_size": 151936, "tie_word_embeddings": true})"},
    {"Qwen3-0.6B", 0.596, 0, true, 0, R"({"model_type": "qwen3",
      "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
      "vocab_size": 151936, "tie_word_embeddings": true})"},
    {"MiMo-7B", 7.62, 0, true, 0.211, R"({"model_type": "mimo",
      "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 36,
      "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
      "attention_bias": true, "num_nextn_predict_layers": 1,
      "vocab_size": 151680})"},
    {"phi-2", 2.779684, 0, true, 0, R"({"model_type": "phi",
      "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
      "num_attention_heads": 32, "hidden_act": "gelu_new",
      "vocab_size": 51200})"},
    {"Phi-3-mini", 3.821, 0, true, 0, R"({"model_type": "phi3",
      "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 32,
      "sliding_window": 2047, "vocab_size": 32064})"},
    {"phi-4", 14.66, 0, true, 0, R"({"model_type": "phi3",
      "hidden_size": 5120, "intermediate_size": 17920, "num_hidden_layers": 40,
      "num_attention_heads": 40, "num_key_value_heads": 10,
      "sliding_window": null, "vocab_size": 100352})"},
    {"OLMo-7B", 6.888, 0, true, 0, R"({"model_type": "olmo",
      "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 50304})"},
    {"OLMo-2-7B", 7.299, 0, true, 0, R"({"model_type": "olmo2",
      "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 100352})"},
    {"OLMo-3-7B", 7.298, 0, true, 0, R"({"model_type": "olmo3",
      "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
      "num_attention_heads": 32, "sliding_window": 4096,
      "vocab_size": 100278})"},
    {"gemma-7b", 8.5377, 0, true, 0, R"({"model_type": "gemma",
      "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
      "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256,
      "vocab_size": 256000})"},
    {"gemma-2-9b", 9.2417, 0, true, 0, R"({"model_type": "gemma2",
      "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
      "sliding_window": 4096, "vocab_size": 256000})"},
    // Gemma 3 technical report, table 1: 302 and 698 million.
    {"gemma-3-1b", 1.000, 0, true, 0, R"({"model_type": "gemma3_text",
      "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26,
      "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
      "sliding_window": 512, "vocab_size": 262144})"},
    {"glm-4-9b", 9.400, 0, true, 0, R"({"model_type": "glm",
      "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
      "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
      "attention_bias": true, "vocab_size": 151552})"},
    {"GLM-4-32B-0414", 32.57, 0, true, 0, R"({"model_type": "glm4",
      "hidden_size": 6144, "intermediate_size": 23040, "num_hidden_layers": 61,
      "num_attention_heads": 48, "num_key_value_heads": 2, "head_dim": 128,
      "vocab_size": 151552})"},
    {"Minitron-4B", 4.19, 0, true, 0, R"({"model_type": "nemotron",
      "hidden_size": 3072, "intermediate_size": 9216, "num_hidden_layers": 32,
      "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128,
      "hidden_act": "relu2", "vocab_size": 256000})"},
};
INSTANTIATE_TEST_SUITE_P(Dense, PublishedTest, testing::ValuesIn(kDense));

const Published kExperts[] = {
    {"OLMoE-1B-7B", 6.92, 1.28, true, 0, R"({"model_type": "olmoe",
      "hidden_size": 2048, "intermediate_size": 1024, "num_hidden_layers": 16,
      "num_attention_heads": 16, "num_experts": 64, "num_experts_per_tok": 8,
      "vocab_size": 50304})"},
    {"Phi-3.5-MoE", 41.9, 6.6, true, 0, R"({"model_type": "phimoe",
      "hidden_size": 4096, "intermediate_size": 6400, "num_hidden_layers": 32,
      "num_attention_heads": 32, "num_key_value_heads": 8,
      "attention_bias": true, "lm_head_bias": true, "num_local_experts": 16,
      "num_experts_per_tok": 2, "vocab_size": 32064})",
     0.05},
    {"GLM-4.5-Air", 106.85, 12, false, 0, R"({"model_type": "glm4_moe",
      "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46,
      "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
      "attention_bias": true, "first_k_dense_replace": 1,
      "n_routed_experts": 128, "n_shared_experts": 1,
      "num_experts_per_tok": 8, "moe_intermediate_size": 1408,
      "num_nextn_predict_layers": 1, "vocab_size": 151552})",
     1},
    {"MiniMax-M2", 228.7, 10, false, 0, R"({"model_type": "minimax_m2",
      "hidden_size": 3072, "intermediate_size": 1536, "num_hidden_layers": 62,
      "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128,
      "use_qk_norm": true, "num_local_experts": 256, "num_experts_per_tok": 8,
      "vocab_size": 200064})",
     0.5},
    {"MiMo-V2-Flash", 309, 15, false, 0, R"({"model_type": "mimo_v2_flash",
      "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 12,
      "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 192,
      "v_head_dim": 128, "n_routed_experts": 256, "num_experts_per_tok": 8,
      "moe_intermediate_size": 2048, "sliding_window": 128,
      "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8,
      "swa_head_dim": 192, "swa_v_head_dim": 128,
      "add_swa_attention_sink_bias": true,
      "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0],
      "moe_layer_freq": [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
      "vocab_size": 152576})",
     1e9},  // cut to 12 layers: only read
    {"Step-3.5-Flash", 196, 11, false, 0, R"({"model_type": "step3p5",
      "hidden_size": 4096, "intermediate_size": 11264, "num_hidden_layers": 45,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
      "first_k_dense_replace": 3, "num_experts": 288, "num_experts_per_tok": 8,
      "moe_intermediate_size": 1280, "share_expert_dim": 1280,
      "sliding_window": 512, "vocab_size": 128896})",
     0.7},
    {"gemma-4-26B-A4B", 25.2, 3.8, true, 0, R"({"model_type": "gemma4_text",
      "hidden_size": 2816, "intermediate_size": 2112, "num_hidden_layers": 30,
      "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
      "global_head_dim": 512, "num_global_key_value_heads": 2,
      "attention_k_eq_v": true, "sliding_window": 1024,
      "enable_moe_block": true, "num_experts": 128, "top_k_experts": 8,
      "moe_intermediate_size": 704, "vocab_size": 262144})",
     0.03},
};
INSTANTIATE_TEST_SUITE_P(Experts, PublishedTest, testing::ValuesIn(kExperts));

const Published kLatent[] = {
    // DeepSeek-V2, section 3.1.2: 236 and 21 billion; Lite: 15.7 and 2.4.
    {"DeepSeek-V2", 236, 21, true, 0, R"({"model_type": "deepseek_v2",
      "hidden_size": 5120, "intermediate_size": 12288, "num_hidden_layers": 60,
      "num_attention_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6,
      "moe_intermediate_size": 1536, "first_k_dense_replace": 1,
      "vocab_size": 102400})",
     0.4},
    {"DeepSeek-V2-Lite", 15.7, 2.4, false, 0, R"({"model_type": "deepseek_v2",
      "hidden_size": 2048, "intermediate_size": 10944, "num_hidden_layers": 27,
      "num_attention_heads": 16, "q_lora_rank": null, "kv_lora_rank": 512,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
      "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
      "vocab_size": 102400})",
     0.05},
    // DeepSeek-V3 with an index of 64 x 128: 0.85 billion more.
    {"DeepSeek-V3.2", 671.9, 37, false, 0, R"({"model_type": "deepseek_v32",
      "hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
      "num_attention_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
      "moe_intermediate_size": 2048, "first_k_dense_replace": 3,
      "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048,
      "vocab_size": 129280})",
     0.5},
    {"DeepSeek-V4-Flash", 284, 13, false, 0, R"({"model_type": "deepseek_v4",
      "hidden_size": 4096, "num_hidden_layers": 6, "num_attention_heads": 64,
      "num_key_value_heads": 1, "head_dim": 512, "q_lora_rank": 1024,
      "o_groups": 8, "o_lora_rank": 1024, "qk_rope_head_dim": 64,
      "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 6,
      "moe_intermediate_size": 2048, "index_n_heads": 64,
      "index_head_dim": 128, "index_topk": 512, "sliding_window": 128,
      "compress_ratios": [0, 0, 4, 128, 4, 128, 0], "hc_mult": 4,
      "num_nextn_predict_layers": 1, "vocab_size": 129280})",
     1e9},  // cut to 6 layers: only read
    {"GLM-4.7-Flash", 29.9, 3, false, 0, R"({"model_type": "glm4_moe_lite",
      "hidden_size": 2048, "intermediate_size": 10240, "num_hidden_layers": 47,
      "num_attention_heads": 20, "q_lora_rank": 768, "kv_lora_rank": 512,
      "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
      "n_routed_experts": 64, "n_shared_experts": 1, "num_experts_per_tok": 4,
      "moe_intermediate_size": 1536, "first_k_dense_replace": 1,
      "num_nextn_predict_layers": 1, "vocab_size": 154880})",
     0.6},
    {"GLM-5", 744, 40, false, 0, R"({"model_type": "glm_moe_dsa",
      "hidden_size": 6144, "intermediate_size": 12288, "num_hidden_layers": 78,
      "num_attention_heads": 64, "q_lora_rank": 2048, "kv_lora_rank": 512,
      "qk_head_dim": 256, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64,
      "v_head_dim": 256, "n_routed_experts": 256, "n_shared_experts": 1,
      "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
      "first_k_dense_replace": 3, "index_n_heads": 32, "index_head_dim": 128,
      "index_topk": 2048, "vocab_size": 154880})",
     1},
};
INSTANTIATE_TEST_SUITE_P(Latent, PublishedTest, testing::ValuesIn(kLatent));

const Published kHybrid[] = {
    {"Qwen3-Next-80B-A3B", 79.7, 3, false, 0, R"({"model_type": "qwen3_next",
      "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16,
      "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4,
      "linear_num_key_heads": 16, "linear_num_value_heads": 32,
      "linear_key_head_dim": 128, "linear_value_head_dim": 128,
      "num_experts": 512, "num_experts_per_tok": 10,
      "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
      "vocab_size": 151936})",
     0.6},
    {"Qwen3.5-27B", 26.9, 0, true, 0, R"({"model_type": "qwen3_5_text",
      "hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 64,
      "num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256,
      "linear_num_key_heads": 16, "linear_num_value_heads": 48,
      "linear_key_head_dim": 128, "linear_value_head_dim": 128,
      "mtp_num_hidden_layers": 1, "vocab_size": 248320})"},
    // Nemotron-H, table 1; Nemotron 3 Nano: 31.6, 3.2 without the embedding.
    {"Nemotron-H-8B", 8.1, 0, true, 0, R"({"model_type": "nemotron_h",
      "hidden_size": 4096, "intermediate_size": 21504,
      "hybrid_override_pattern":
        "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
      "num_hidden_layers": 52, "num_attention_heads": 32,
      "num_key_value_heads": 8, "attention_head_dim": 128,
      "mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128,
      "n_groups": 8, "vocab_size": 131072})"},
    {"Nemotron-3-Nano", 31.6, 3.2, false, 0, R"({"model_type": "nemotron_h",
      "hidden_size": 2688, "intermediate_size": 1856,
      "hybrid_override_pattern":
        "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
      "num_hidden_layers": 52, "num_attention_heads": 32,
      "num_key_value_heads": 2, "head_dim": 128,
      "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128,
      "n_groups": 8, "n_routed_experts": 128, "n_shared_experts": 1,
      "num_experts_per_tok": 6, "moe_intermediate_size": 1856,
      "moe_shared_expert_intermediate_size": 3712, "vocab_size": 131072})",
     0.03},
    // MiniMax-01, section 2: 456 and 45.9 billion.
    {"MiniMax-Text-01", 456, 45.9, true, 0, R"({"model_type": "minimax",
      "hidden_size": 6144, "intermediate_size": 9216, "num_hidden_layers": 8,
      "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
      "num_local_experts": 32, "num_experts_per_tok": 2,
      "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1],
      "vocab_size": 200064})",
     1e9},  // a tenth of its layers: only read
    {"Kimi-Linear-48B-A3B", 49.1, 3, false, 0, R"({"model_type": "kimi_linear",
      "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 27,
      "num_attention_heads": 32, "num_key_value_heads": 32,
      "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
      "v_head_dim": 128, "num_experts": 256, "num_experts_per_token": 8,
      "moe_intermediate_size": 1024, "num_shared_experts": 1,
      "first_k_dense_replace": 1, "linear_attn_config": {
        "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4,
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21,
                       22, 23, 25, 26]}, "vocab_size": 163840})",
     0.3},
};
INSTANTIATE_TEST_SUITE_P(Hybrid, PublishedTest, testing::ValuesIn(kHybrid));

const Published kVision[] = {
    // Shapes of the checkpoint: 8,767,123,696 parameters.
    {"Qwen3-VL-8B", 8.7671237, 0, true, 0, R"({"model_type": "qwen3_vl",
      "tie_word_embeddings": false, "text_config": {
        "model_type": "qwen3_vl_text", "hidden_size": 4096,
        "intermediate_size": 12288, "num_hidden_layers": 36,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 151936},
      "vision_config": {"depth": 27, "hidden_size": 1152,
        "intermediate_size": 4304, "num_heads": 16, "out_hidden_size": 4096,
        "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": [8, 16, 24]}})"},
};
INSTANTIATE_TEST_SUITE_P(Vision, PublishedTest, testing::ValuesIn(kVision));

}  // namespace weir::models::published_counts_test
