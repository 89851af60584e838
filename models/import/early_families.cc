// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/import/common_fields.h"

namespace weir::models {
namespace {

void ReadGpt2(Config config) {
  auto& [fields, out] = config;
  RefuseFlag(fields, "add_cross_attention");
  out->set_num_layers(CountOf(fields, {"n_layer", "num_hidden_layers"}, 12));
  out->set_hidden_size(CountOf(fields, {"n_embd", "hidden_size"}, 768));
  out->set_num_heads(CountOf(fields, {"n_head", "num_attention_heads"}, 12));
  out->set_feed_forward_size(fields.Count("n_inner", 0));
  out->set_vocabulary_size(fields.Count("vocab_size", 50257));
  out->set_num_positions(
      CountOf(fields, {"n_positions", "max_position_embeddings"}, 1024));
  fields.Count("n_ctx", 0);  // older name of n_positions, not used
  ReadActivation(config, "activation_function", "gelu_new");
  out->set_attention_bias(true);
  out->set_attention_output_bias(true);
  out->set_feed_forward_bias(true);
  out->set_tied_embeddings(fields.Flag("tie_word_embeddings", true));
  out->set_causal(true);
}

void ReadBert(Config config) {
  auto& [fields, out] = config;
  const std::vector<std::string> classes = fields.Texts("architectures");
  const std::string architecture =
      classes.empty() ? "BertForMaskedLM" : classes.front();
  RefuseFlag(fields, "is_decoder");
  RefuseFlag(fields, "add_cross_attention");
  const std::string positions =
      fields.Text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    fields.Add("position_embedding_type",
               absl::StrCat("is \"", positions.substr(0, 80),
                            "\", expected \"absolute\""));
  }
  out->set_num_layers(fields.Count("num_hidden_layers", 12));
  out->set_hidden_size(fields.Count("hidden_size", 768));
  out->set_num_heads(fields.Count("num_attention_heads", 12));
  out->set_feed_forward_size(fields.Count("intermediate_size", 3072));
  out->set_vocabulary_size(fields.Count("vocab_size", 30522));
  out->set_num_positions(fields.Count("max_position_embeddings", 512));
  out->set_num_token_types(fields.Count("type_vocab_size", 2));
  ReadActivation(config, "hidden_act", "gelu");
  out->set_attention_bias(true);
  out->set_attention_output_bias(true);
  out->set_feed_forward_bias(true);
  out->set_tied_embeddings(fields.Flag("tie_word_embeddings", true));
  out->set_post_norm(true);
  out->set_embedding_norm(true);
  out->set_mlm_head(architecture != "BertModel");
  out->set_pooler(architecture != "BertForMaskedLM");
  out->set_next_sentence_head(architecture == "BertForPreTraining");
}

}  // namespace

std::vector<Family> EarlyFamilies() {
  return {
      {.model_type = "bert",
       .architectures = {"BertForMaskedLM", "BertForPreTraining", "BertModel"},
       .read = ReadBert},
      {.model_type = "gpt2",
       .architectures = {"GPT2LMHeadModel", "GPT2Model"},
       .read = ReadGpt2,
       .names = {{"num_layers", "n_layer"},
                 {"hidden_size", "n_embd"},
                 {"num_heads", "n_head"},
                 {"feed_forward_size", "n_inner"},
                 {"num_positions", "n_positions"}}}};
}

}  // namespace weir::models
