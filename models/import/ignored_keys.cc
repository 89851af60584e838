// SPDX-License-Identifier: Apache-2.0
#include "models/import/ignored_keys.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"

namespace weir::models {
namespace {

// Names of keys that look like sizes or kinds of layers but are not.
constexpr absl::string_view kIgnored[] = {
    // Files and programs.
    "_attn_implementation",
    "architectures",
    "auto_map",
    "expert_dtype",
    "dtype",
    "model_type",
    "moe_router_dtype",
    "num_logits_to_keep",
    "quantization_config",
    "tokenizer_class",
    "torch_dtype",
    "type_vocab_size",
    "use_mamba_kernels",
    "mamba_ssm_dtype",
    "mamba_ssm_cache_dtype",
    "ep_size",
    "pretraining_tp",
    "_experts_implementation",
    "moe_shared_expert_overlap",
    "transformers_version",
    "is_decoder",
    "image_token_compression_method",
    "quant_method",
    "num_reward_heads",
    // Generation of text.
    "beam_groups",
    "encoder_no_repeat_ngram_size",
    "no_repeat_ngram_size",
    "max_length",
    "min_length",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "chunk_size_feed_forward",
    "forced_eos_token_id",
    "exponential_decay_length_penalty",
    "diversity_penalty",
    "length_penalty",
    "prefix",
    "repetition_penalty",
    "problem_type",
    "remove_invalid_values",
    "early_stopping",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    // Ranges of positions.
    "initial_context_length",
    "original_max_position_embeddings",
    "max_position_embeddings",
    "max_sequence_length",
    "seq_length",
    "partial_rotary_factor",
    "rotary_dim",
    "rotary_pct",
    "mrope_section",
    "position_embedding_type",
    "rope_interleave",
    "indexer_rope_interleave",
    "compress_rope_theta",
    "rope_parameters",
    "rope_scaling",
    "rope_mode",
    "swa_rope_theta",
    "rope_type",
    "interleaved_mrope",
    "sliding_rope_theta",
    "image_grid_pinpoints",
    "image_size",
    "video_seq_length",
    "use_mrope",
    "max_window_layers",
    "query_pre_attn_scalar",
    "rope_local_base_freq",
    // Routing and its losses: the same scores for every expert.
    "aux_loss_alpha",
    "moe_renormalize",
    "moe_router_activation_func",
    "moe_router_scaling_factor",
    "n_group",
    "norm_topk_prob",
    "num_expert_group",
    "num_hash_layers",
    "output_router_logits",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "input_jitter_noise",
    "router_z_loss_coef",
    "scoring_func",
    "seq_aux",
    "topk_group",
    "topk_method",
    "use_grouped_topk",
    "aux_loss_free",
    "moe_aux_loss_coeff",
    "shared_moe_mode",
    "z_loss_coefficient",
    "score_function_type",
    "use_routing_bias",
    "use_moe_router_bias",
    "moe_router_enable_expert_bias",
    // Scales, limits and initial values of elements.
    "activation_situ_beta",
    "activation_situ_linear_beta",
    "attention_multiplier",
    "attention_value_scale",
    "attn_logit_softcapping",
    "attn_scale",
    "attn_temperature_tuning",
    "clip_qkv",
    "embedding_multiplier",
    "final_logit_softcapping",
    "floor_scale",
    "gate_lower_bound",
    "hc_sinkhorn_iters",
    "head_weight_scale",
    "initializer_factor",
    "layernorm_full_attention_alpha",
    "layernorm_full_attention_beta",
    "layernorm_linear_attention_alpha",
    "layernorm_linear_attention_beta",
    "layernorm_mlp_alpha",
    "layernorm_mlp_beta",
    "logits_scaling",
    "rescale_prenorm_residual",
    "residual_in_fp32",
    "residual_multiplier",
    "swiglu_alpha",
    "swiglu_limit",
    "swiglu_limits",
    "swiglu_limits_shared",
    "time_step_limit",
    "time_step_max",
    "time_step_min",
    "time_step_floor",
    "time_step_rank",
    "use_gemma_norm",
    "fp32_residual_connection",
    "norm_before_gate",
    "layer_norm_type",
    "use_clipped_linears",
    "standardize",
    "full_attn_alpha_factor",
    "full_attn_mod",
    "full_attn_beta_factor",
    "linear_attn_alpha_factor",
    "linear_attn_beta_factor",
    "mlp_alpha_factor",
    "mlp_beta_factor",
    "summary_activation",
    "summary_type",
    "summary_use_proj",
    "summary_proj_to_labels",
    "task_specific_params",
    "gradient_checkpointing",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
    "reorder_and_upcast_attn",
    "use_bidirectional_attention",
    "attn_implementation",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "classifier_dropout",
    "embd_pdrop",
    "attn_pdrop",
    "resid_pdrop",
    "index_share_for_mtp_iteration",
    "index_skip_topk_offset",
    // Placeholders of images.
    "img_token_compression_config",
    "process_image_mode",
    "use_unified_vision_chunk",
    "vision_feature_layer",
    "vision_feature_select_strategy",
    "vision_soft_tokens_per_image",
    "vision_segment_max_frames",
    "video_attn_type",
    "pos_emb_type",
    "pos_emb_interpolation_mode",
    "default_output_length",
};

constexpr absl::string_view kIgnoredEnds[] = {
    "_coef",       "_dropout",    "_dtype",     "_eps",   "_epsilon",
    "_id",         "_ids",        "_index",     "_range", "_theta",
    "_token",      "_tokens",     "_token_ids", "_std",   "dropout",
    "placeholder", "_temperature"};

// Parts of names of keys that describe sizes, counts or kinds of layers.
constexpr absl::string_view kSizes[] = {
    "_act",   "activation", "attention", "attn",   "bias",  "block",
    "chunk",  "compress",   "conv",      "depth",  "dim",   "embed",
    "expand", "expert",     "freq",      "gate",   "group", "head",
    "hidden", "index",      "interval",  "kernel", "key",   "latent",
    "layer",  "lora",       "mixer",     "mlp",    "moe",   "mtp",
    "norm",   "num_",       "pattern",   "rank",   "ratio", "residual",
    "share",  "size",       "sparse",    "ssm",    "state", "step",
    "type",   "value",      "vocab",     "width",  "window"};

}  // namespace

bool IsIgnoredKey(absl::string_view key) {
  if (std::find(std::begin(kIgnored), std::end(kIgnored), key) !=
      std::end(kIgnored)) {
    return true;
  }
  return std::any_of(
      std::begin(kIgnoredEnds), std::end(kIgnoredEnds),
      [&](absl::string_view end) { return absl::EndsWith(key, end); });
}

bool NamesSize(absl::string_view key) {
  return absl::StartsWith(key, "n_") ||
         std::any_of(std::begin(kSizes), std::end(kSizes),
                     [&](absl::string_view part) {
                       return absl::StrContains(key, part);
                     });
}

}  // namespace weir::models
