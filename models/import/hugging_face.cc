// SPDX-License-Identifier: Apache-2.0
#include "models/import/hugging_face.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "models/import/json_fields.h"
#include "models/model_limits.h"

namespace weir::models {
namespace {

// Pre-training rarely uses the longest context that a model supports.
constexpr uint32_t kMaxDefaultSequenceLength = 8192;

// The two spellings that a config may use for a count.
struct Key {
  const char* own;
  const char* alias;
};

uint32_t Count(JsonFields* fields, Key key, uint32_t otherwise) {
  return fields->Has(key.own) ? fields->Count(key.own, otherwise)
                              : fields->Count(key.alias, otherwise);
}

void Refuse(JsonFields* fields, Problems* problems, const char* key) {
  if (fields->Flag(key, false)) {
    problems->Add(key,
                  "is true, expected false: weir does not support such layers");
  }
}

// Checks and returns the checkpoint's class, by default the first supported
// one.
std::string Architecture(JsonFields* fields, Problems* problems,
                         const std::vector<std::string>& supported) {
  const std::vector<std::string> found = fields->Texts("architectures");
  if (found.empty()) return supported.front();
  if (std::find(supported.begin(), supported.end(), found.front()) ==
      supported.end()) {
    problems->Add(
        "architectures",
        absl::StrCat("is \"", found.front().substr(0, 80),
                     "\", expected one of: ", absl::StrJoin(supported, ", ")));
    return supported.front();
  }
  return found.front();
}

void ReadGpt2(JsonFields* fields, Problems* problems, Transformer* out) {
  Architecture(fields, problems, {"GPT2LMHeadModel", "GPT2Model"});
  Refuse(fields, problems, "add_cross_attention");
  out->set_num_layers(Count(fields, {"n_layer", "num_hidden_layers"}, 12));
  out->set_hidden_size(Count(fields, {"n_embd", "hidden_size"}, 768));
  out->set_num_heads(Count(fields, {"n_head", "num_attention_heads"}, 12));
  out->set_feed_forward_size(fields->Count("n_inner", 0));
  out->set_vocabulary_size(fields->Count("vocab_size", 50257));
  out->set_num_positions(
      Count(fields, {"n_positions", "max_position_embeddings"}, 1024));
  out->set_attention_bias(true);
  out->set_attention_output_bias(true);
  out->set_feed_forward_bias(true);
  out->set_tied_embeddings(fields->Flag("tie_word_embeddings", true));
  out->set_causal(true);
}

void ReadBert(JsonFields* fields, Problems* problems, Transformer* out) {
  const std::string architecture = Architecture(
      fields, problems, {"BertForMaskedLM", "BertForPreTraining", "BertModel"});
  Refuse(fields, problems, "is_decoder");
  Refuse(fields, problems, "add_cross_attention");
  const std::string positions =
      fields->Text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    problems->Add("position_embedding_type",
                  absl::StrCat("is \"", positions.substr(0, 80),
                               "\", expected \"absolute\""));
  }
  out->set_num_layers(fields->Count("num_hidden_layers", 12));
  out->set_hidden_size(fields->Count("hidden_size", 768));
  out->set_num_heads(fields->Count("num_attention_heads", 12));
  out->set_feed_forward_size(fields->Count("intermediate_size", 3072));
  out->set_vocabulary_size(fields->Count("vocab_size", 30522));
  out->set_num_positions(fields->Count("max_position_embeddings", 512));
  out->set_num_token_types(fields->Count("type_vocab_size", 2));
  out->set_attention_bias(true);
  out->set_attention_output_bias(true);
  out->set_feed_forward_bias(true);
  out->set_tied_embeddings(fields->Flag("tie_word_embeddings", true));
  out->set_post_norm(true);
  out->set_embedding_norm(true);
  out->set_mlm_head(architecture != "BertModel");
  out->set_pooler(architecture != "BertForMaskedLM");
  out->set_next_sentence_head(architecture == "BertForPreTraining");
}

// Llama-like models differ only in defaults and optional features.
struct LlamaDefaults {
  uint32_t feed_forward_size;
  uint32_t num_kv_heads;
  uint32_t max_positions;
};

void ReadLlamaLike(const LlamaDefaults& defaults, JsonFields* fields,
                   Transformer* out) {
  out->set_num_layers(fields->Count("num_hidden_layers", 32));
  out->set_hidden_size(fields->Count("hidden_size", 4096));
  out->set_num_heads(fields->Count("num_attention_heads", 32));
  out->set_num_kv_heads(
      fields->Count("num_key_value_heads", defaults.num_kv_heads));
  out->set_head_size(fields->Count("head_dim", 0));
  out->set_feed_forward_size(
      fields->Count("intermediate_size", defaults.feed_forward_size));
  out->set_vocabulary_size(fields->Count("vocab_size", 32000));
  out->set_default_sequence_length(
      std::min(fields->Count("max_position_embeddings", defaults.max_positions),
               kMaxDefaultSequenceLength));
  out->set_gated_feed_forward(true);
  out->set_rms_norm(true);
  out->set_tied_embeddings(fields->Flag("tie_word_embeddings", false));
  out->set_causal(true);
}

void ReadLlama(JsonFields* fields, Problems* problems, Transformer* out) {
  Architecture(fields, problems, {"LlamaForCausalLM"});
  ReadLlamaLike(
      {.feed_forward_size = 11008, .num_kv_heads = 0, .max_positions = 2048},
      fields, out);
  const bool attention_bias = fields->Flag("attention_bias", false);
  out->set_attention_bias(attention_bias);
  out->set_attention_output_bias(attention_bias);
  out->set_feed_forward_bias(fields->Flag("mlp_bias", false));
}

void ReadMistral(JsonFields* fields, Problems* problems, Transformer* out) {
  Architecture(fields, problems, {"MistralForCausalLM"});
  // Null, unlike absence, means one key-value head per query head.
  const bool absent = !fields->Mentions("num_key_value_heads");
  ReadLlamaLike({.feed_forward_size = 14336,
                 .num_kv_heads = absent ? 8u : 0u,
                 .max_positions = 131072},
                fields, out);
  out->set_sliding_window(fields->Count(
      "sliding_window", fields->Mentions("sliding_window") ? 0 : 4096));
}

void ReadMixtral(JsonFields* fields, Problems* problems, Transformer* out) {
  Architecture(fields, problems, {"MixtralForCausalLM"});
  const bool absent = !fields->Mentions("num_key_value_heads");
  ReadLlamaLike({.feed_forward_size = 14336,
                 .num_kv_heads = absent ? 8u : 0u,
                 .max_positions = 131072},
                fields, out);
  out->set_sliding_window(fields->Count("sliding_window", 0));
  out->set_num_experts(fields->Count("num_local_experts", 8));
  out->set_experts_per_token(fields->Count("num_experts_per_tok", 2));
}

// Reads the leading blocks without experts, which are listed individually.
void ReadDenseBlocks(JsonFields* fields, Problems* problems, Transformer* out) {
  if (fields->Count("decoder_sparse_step", 1) != 1) {
    problems->Add("decoder_sparse_step", "is not 1, expected 1");
  }
  const std::vector<uint32_t> dense = fields->Counts("mlp_only_layers");
  for (size_t i = 0; i < dense.size(); ++i) {
    if (dense[i] == i) continue;
    problems->Add("mlp_only_layers",
                  "lists other layers than the first ones, expected 0, 1, ...");
    return;
  }
  out->set_num_dense_blocks(static_cast<uint32_t>(dense.size()));
}

void ReadQwen2Moe(JsonFields* fields, Problems* problems, Transformer* out) {
  Architecture(fields, problems, {"Qwen2MoeForCausalLM"});
  ReadLlamaLike(
      {.feed_forward_size = 5632, .num_kv_heads = 16, .max_positions = 32768},
      fields, out);
  out->set_attention_bias(true);
  out->set_num_experts(fields->Count("num_experts", 60));
  out->set_experts_per_token(fields->Count("num_experts_per_tok", 4));
  const uint32_t expert = fields->Count("moe_intermediate_size", 1408);
  const uint32_t shared =
      fields->Count("shared_expert_intermediate_size", 5632);
  out->set_expert_feed_forward_size(expert);
  if (expert > 0 && shared % expert == 0) {
    out->set_num_shared_experts(shared / expert);
  } else {
    problems->Add(
        "shared_expert_intermediate_size",
        absl::StrCat("is ", shared,
                     ", expected a multiple of moe_intermediate_size (", expert,
                     ")"));
  }
  out->set_shared_expert_gate(true);
  ReadDenseBlocks(fields, problems, out);
}

void ReadQwen3Moe(JsonFields* fields, Problems* problems, Transformer* out) {
  Architecture(fields, problems, {"Qwen3MoeForCausalLM"});
  ReadLlamaLike(
      {.feed_forward_size = 6144, .num_kv_heads = 4, .max_positions = 32768},
      fields, out);
  const bool attention_bias = fields->Flag("attention_bias", false);
  out->set_attention_bias(attention_bias);
  out->set_attention_output_bias(attention_bias);
  out->set_query_key_norm(true);
  out->set_num_experts(fields->Count("num_experts", 128));
  out->set_experts_per_token(fields->Count("num_experts_per_tok", 8));
  out->set_expert_feed_forward_size(
      fields->Count("moe_intermediate_size", 768));
  ReadDenseBlocks(fields, problems, out);
}

// DeepSeek-MoE; version 2 and later use a different attention.
void ReadDeepSeek(JsonFields* fields, Problems* problems, Transformer* out) {
  Architecture(fields, problems, {"DeepseekForCausalLM"});
  ReadLlamaLike(
      {.feed_forward_size = 11008, .num_kv_heads = 0, .max_positions = 2048},
      fields, out);
  const bool attention_bias = fields->Flag("attention_bias", false);
  out->set_attention_bias(attention_bias);
  out->set_attention_output_bias(attention_bias);
  out->set_num_experts(fields->Count("n_routed_experts", 0));
  if (out->num_experts() == 0) return;
  out->set_experts_per_token(fields->Count("num_experts_per_tok", 0));
  out->set_expert_feed_forward_size(
      fields->Count("moe_intermediate_size", 1407));
  out->set_num_shared_experts(fields->Count("n_shared_experts", 0));
  out->set_num_dense_blocks(fields->Count("first_k_dense_replace", 0));
  if (fields->Count("moe_layer_freq", 1) != 1) {
    problems->Add("moe_layer_freq", "is not 1, expected 1");
  }
}

void RefuseLatentAttention(JsonFields* fields, Problems* problems,
                           Transformer* out) {
  problems->Add("model_type",
                absl::StrCat("is \"", fields->Text("model_type", ""),
                             "\", whose multi-head latent attention weir does "
                             "not support; expected \"deepseek\" or another"));
  out->set_num_layers(1);  // prevents problems with unread fields
  out->set_hidden_size(1);
  out->set_num_heads(1);
  out->set_vocabulary_size(1);
}

struct Family {
  const char* model_type;
  void (*read)(JsonFields*, Problems*, Transformer*);
  // Pairs of native field and this family's key.
  std::vector<std::pair<absl::string_view, const char*>> names;
};

const std::vector<Family>& Families() {
  static const auto& families = *new std::vector<Family>{
      {"bert", ReadBert, {}},
      {"deepseek", ReadDeepSeek, {{"num_experts", "n_routed_experts"}}},
      {"deepseek_v2", RefuseLatentAttention, {}},
      {"deepseek_v3", RefuseLatentAttention, {}},
      {"gpt2",
       ReadGpt2,
       {{"num_layers", "n_layer"},
        {"hidden_size", "n_embd"},
        {"num_heads", "n_head"},
        {"feed_forward_size", "n_inner"},
        {"num_positions", "n_positions"}}},
      {"llama", ReadLlama, {}},
      {"mistral", ReadMistral, {}},
      {"mixtral", ReadMixtral, {{"num_experts", "num_local_experts"}}},
      {"qwen2_moe", ReadQwen2Moe, {}},
      {"qwen3_moe", ReadQwen3Moe, {}},
  };
  return families;
}

std::string KeyOf(const Family& family, absl::string_view native) {
  static constexpr std::pair<absl::string_view, const char*> kUsual[] = {
      {"num_layers", "num_hidden_layers"},
      {"num_heads", "num_attention_heads"},
      {"num_kv_heads", "num_key_value_heads"},
      {"head_size", "head_dim"},
      {"feed_forward_size", "intermediate_size"},
      {"vocabulary_size", "vocab_size"},
      {"num_positions", "max_position_embeddings"},
      {"num_token_types", "type_vocab_size"},
      {"default_sequence_length", "max_position_embeddings"},
      {"experts_per_token", "num_experts_per_tok"},
      {"expert_feed_forward_size", "moe_intermediate_size"},
      {"num_shared_experts", "n_shared_experts"},
      {"num_dense_blocks", "first_k_dense_replace"},
  };
  for (const auto& [name, key] : family.names) {
    if (name == native) return key;
  }
  for (const auto& [name, key] : kUsual) {
    if (name == native) return key;
  }
  return std::string(native);
}

absl::StatusOr<const Family*> FamilyOf(absl::string_view label,
                                       const std::string& model_type) {
  std::vector<std::string> known;
  for (const Family& family : Families()) {
    if (model_type == family.model_type) return &family;
    known.push_back(family.model_type);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      label, ": model_type is ",
      model_type.empty() ? "missing"
                         : absl::StrCat("\"", model_type.substr(0, 80), "\""),
      ", expected one of: ", absl::StrJoin(known, ", ")));
}

}  // namespace

absl::StatusOr<Model> ParseHuggingFace(absl::string_view label,
                                       absl::string_view text) {
  ASSIGN_OR_RETURN(const nlohmann::json object, ParseJsonObject(label, text));
  Problems problems(label);
  JsonFields fields(object, &problems);
  const std::string model_type = fields.Text("model_type", "");
  RETURN_IF_ERROR(problems.ToStatus());
  ASSIGN_OR_RETURN(const Family* family, FamilyOf(label, model_type));
  Model model;
  // Checkpoints are named "owner/name".
  const std::string name = fields.Text("_name_or_path", "");
  model.set_name(name.substr(name.rfind('/') + 1));
  family->read(&fields, &problems, model.mutable_transformer());
  fields.CheckSpelling();
  CheckTransformer(
      model.transformer(),
      [&](absl::string_view native) { return KeyOf(*family, native); },
      &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  return model;
}

}  // namespace weir::models
