// SPDX-License-Identifier: Apache-2.0
// Vision-language models: an encoder (vision_config) and a language model
// (text_config).
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "models/import/common_fields.h"

namespace weir::models {
namespace {

// Sets the sizes of an encoder's blocks: LayerNorm, biases, GELU.
void SetBlocks(JsonFields& vision, Encoder* encoder) {
  Transformer& blocks = *encoder->mutable_blocks();
  blocks.set_num_layers(CountOf(vision, {"depth", "num_hidden_layers"}, 0));
  blocks.set_hidden_size(RequiredCount(vision, "hidden_size"));
  blocks.set_num_heads(
      CountOf(vision, {"num_heads", "num_attention_heads"}, 1));
  blocks.set_feed_forward_size(RequiredCount(vision, "intermediate_size"));
  blocks.set_attention_bias(true);
  blocks.set_attention_output_bias(true);
  blocks.set_feed_forward_bias(true);
  const bool older = vision.Has("hidden_activation");
  ReadActivation({vision, &blocks}, older ? "hidden_activation" : "hidden_act",
                 "gelu_pytorch_tanh");
}

// Sets the elements of square patches of RGB images.
void SetPatches(JsonFields& vision, uint32_t patches_per_image,
                uint32_t patches_per_token, Encoder* encoder) {
  const uint32_t size = RequiredCount(vision, "patch_size");
  const uint32_t channels = CountOf(vision, {"in_channels", "num_channels"}, 3);
  const uint32_t frames = vision.Count("temporal_patch_size", 1);
  encoder->set_patch_elements(channels * frames * size * size);
  encoder->set_patches_per_image(patches_per_image);
  encoder->set_patches_per_token(patches_per_token);
}

// Returns the square of a count, for sizes of images in patches.
uint32_t Square(uint32_t count) { return count * count; }

// Qwen3-VL, and Qwen3.5: square tables of positions, a projector for the result
// and one for each of some inner blocks.
void ReadQwenEncoder(JsonFields& vision, Encoder* encoder) {
  SetBlocks(vision, encoder);
  const uint32_t positions = RequiredCount(vision, "num_position_embeddings");
  const uint32_t merged = Square(vision.Count("spatial_merge_size", 2));
  encoder->mutable_blocks()->set_num_positions(positions);
  SetPatches(vision, positions, merged, encoder);
  encoder->set_patch_bias(true);
  encoder->set_projector_size(merged * encoder->blocks().hidden_size());
  encoder->set_projector_bias(true);
  vision.Count("out_hidden_size", 0);  // that of the language model
  encoder->set_num_projectors(
      1 +
      static_cast<uint32_t>(vision.Counts("deepstack_visual_indexes").size()));
}

// SigLIP in Gemma 3.
void ReadSiglip(JsonFields& vision, Encoder* encoder) {
  SetBlocks(vision, encoder);
  const uint32_t side = vision.Count("image_size", 896) /
                        std::max(RequiredCount(vision, "patch_size"), 1u);
  encoder->mutable_blocks()->set_num_positions(Square(side));
  // The outer configuration sets mm_tokens_per_image to 256.
  SetPatches(vision, Square(side), std::max(Square(side) / 256, 1u), encoder);
  encoder->set_patch_bias(true);
  encoder->set_pooling(true);
  encoder->set_final_norm(true);
  vision.Flag("vision_use_head", false);
}

// Gemma 4: gated, with the four norms of its language model, and two tables of
// positions.
void ReadGemma4Encoder(JsonFields& vision, Encoder* encoder) {
  Transformer& blocks = *encoder->mutable_blocks();
  blocks.set_gated_feed_forward(true);
  SetBlocks(vision, encoder);
  blocks.set_attention_bias(vision.Flag("attention_bias", false));
  blocks.set_attention_output_bias(blocks.attention_bias());
  blocks.set_feed_forward_bias(false);
  blocks.set_num_kv_heads(vision.Count("num_key_value_heads", 0));
  blocks.set_head_size(vision.Count("head_dim", 0));
  vision.Count("global_head_dim", 0);
  blocks.set_rms_norm(true);
  blocks.set_extra_norms(2);
  blocks.set_query_key_norm(true);
  blocks.set_num_positions(2 * vision.Count("position_embedding_size", 0));
  const uint32_t merged = Square(vision.Count("pooling_kernel_size", 3));
  const uint32_t tokens =
      CountOf(vision, {"image_seq_length", "default_output_length"}, 280);
  SetPatches(vision, tokens * merged, merged, encoder);
  encoder->set_pooling(true);
}

// MoonViT of Kimi.
void ReadMoonVit(JsonFields& vision, Encoder* encoder) {
  Transformer& blocks = *encoder->mutable_blocks();
  blocks.set_num_layers(RequiredCount(vision, "vt_num_hidden_layers"));
  blocks.set_hidden_size(RequiredCount(vision, "vt_hidden_size"));
  blocks.set_num_heads(RequiredCount(vision, "vt_num_attention_heads"));
  blocks.set_feed_forward_size(RequiredCount(vision, "vt_intermediate_size"));
  const uint32_t width = vision.Count("qkv_hidden_size", 0);
  if (width > 0) blocks.set_head_size(width / std::max(blocks.num_heads(), 1u));
  const bool bias = vision.Flag("attn_bias", true);
  blocks.set_attention_bias(bias);
  blocks.set_attention_output_bias(bias);
  blocks.set_feed_forward_bias(vision.Flag("linear_bias", true));
  blocks.set_rms_norm(vision.Text("norm_type", "layernorm") == "rmsnorm");
  ReadActivation({vision, &blocks}, "activation_func", "gelu_pytorch_tanh");
  vision.Text("mlp_type", "");
  vision.Text("merge_type", "");
  vision.Text("mm_projector_type", "");
  vision.Text("projector_hidden_act", "");
  vision.Count("text_hidden_size", 0);
  vision.Count("mm_hidden_size", 0);
  const uint32_t height = vision.Count("init_pos_emb_height", 64);
  const uint32_t across = vision.Count("init_pos_emb_width", 64);
  vision.Count("init_pos_emb_time", 0);  // fixed, not learned
  blocks.set_num_positions(height * across);
  uint32_t merged = 1;
  for (const uint32_t side : vision.Counts("merge_kernel_size")) {
    merged *= side;
  }
  SetPatches(vision, height * across, merged, encoder);
  encoder->set_patch_bias(vision.Flag("patch_embed_proj_bias", true));
  encoder->set_projector_size(merged * blocks.hidden_size());
  encoder->set_projector_bias(true);
  encoder->set_final_norm(true);
}

// CLIP with rotary positions in MiniMax-M3.
void ReadClip(JsonFields& vision, Encoder* encoder) {
  SetBlocks(vision, encoder);
  const nlohmann::json* merge = vision.Object("img_token_compression_config");
  uint32_t merged = 1;
  uint32_t frames = 1;
  if (merge != nullptr) {
    JsonFields fields = vision.Inside(*merge, "img_token_compression_config.");
    merged = Square(fields.Count("spatial_merge_size", 1));
    frames = fields.Count("temporal_patch_size", 1);
  }
  constexpr uint32_t kTokens = 576;  // image_seq_length of the file
  SetPatches(vision, kTokens * merged, merged, encoder);
  encoder->set_patch_elements(encoder->patch_elements() * frames);
  encoder->set_projector_size(vision.Count("projection_dim", 0));
  encoder->set_projector_bias(true);
  encoder->set_final_norm(true);
  vision.Count("vocab_size", 0);  // of CLIP's text encoder
}

void ReadLlama4Encoder(JsonFields& vision, Encoder* encoder) {
  SetBlocks(vision, encoder);
  const uint32_t side = vision.Count("image_size", 336) /
                        std::max(RequiredCount(vision, "patch_size"), 1u);
  encoder->mutable_blocks()->set_num_positions(Square(side) + 1);
  // Halves both sides of an image: 1 / 0.5 squared.
  const double ratio = vision.Number("pixel_shuffle_ratio", 0.5);
  const double joined = ratio > 0 ? 1 / (ratio * ratio) : 1;
  SetPatches(vision, Square(side), static_cast<uint32_t>(joined), encoder);
  encoder->set_projector_size(vision.Count("projector_output_dim", 4096));
  for (const char* key : {"projector_input_dim", "vision_output_dim"}) {
    vision.Count(key, 0);
  }
  for (const char* key :
       {"vision_feature_layer", "vision_feature_select_strategy",
        "multi_modal_projector_bias", "projector_dropout"}) {
    vision.Mentions(key);
  }
  encoder->set_final_norm(true);
}

Family Wrapped(const char* model_type, const char* architecture,
               void (*read)(Config),
               void (*read_encoder)(JsonFields&, Encoder*)) {
  return {.model_type = model_type,
          .architectures = {architecture},
          .read = read,
          .text_key = "text_config",
          .read_encoder = read_encoder};
}

}  // namespace

std::vector<Family> VisionFamilies() {
  std::vector<Family> families = {
      Wrapped("gemma3", "Gemma3ForConditionalGeneration", ReadGemma3,
              ReadSiglip),
      Wrapped("gemma4", "Gemma4ForConditionalGeneration", ReadGemma4,
              ReadGemma4Encoder),
      Wrapped("kimi_k25", "KimiK25ForConditionalGeneration", ReadDeepSeekV3,
              ReadMoonVit),
      Wrapped("kimi_k3", "KimiK3ForConditionalGeneration", ReadKimiLinear,
              ReadMoonVit),
      Wrapped("llama4", "Llama4ForConditionalGeneration", ReadLlama4,
              ReadLlama4Encoder),
      Wrapped("minimax_m3_vl", "MiniMaxM3SparseForConditionalGeneration",
              ReadMiniMaxM3, ReadClip),
      Wrapped("qwen3_5", "Qwen3_5ForConditionalGeneration", ReadQwen35,
              ReadQwenEncoder),
      Wrapped("qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration",
              ReadQwen35Moe, ReadQwenEncoder),
      Wrapped("qwen3_vl", "Qwen3VLForConditionalGeneration", ReadQwen3,
              ReadQwenEncoder),
      Wrapped("qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration",
              ReadQwen3Moe, ReadQwenEncoder),
  };
  // Language models of these families, with the model_type of their object.
  families.push_back(
      {.model_type = "qwen3_vl_text", .architectures = {}, .read = ReadQwen3});
  families.push_back({.model_type = "qwen3_vl_moe_text",
                      .architectures = {},
                      .read = ReadQwen3Moe});
  return families;
}

}  // namespace weir::models
