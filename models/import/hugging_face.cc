// SPDX-License-Identifier: Apache-2.0
#include "models/import/hugging_face.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "models/import/family.h"
#include "models/import/json_fields.h"
#include "models/model_limits.h"

namespace weir::models {
namespace {

// Returns all families, sorted by model_type.
const std::vector<Family>& Families() {
  static const auto& families = *[] {
    auto* all = new std::vector<Family>;
    for (const auto& list :
         {EarlyFamilies(), DenseFamilies(), ExpertFamilies(), MixedFamilies(),
          LatentFamilies(), HybridFamilies(), VisionFamilies()}) {
      all->insert(all->end(), list.begin(), list.end());
    }
    std::sort(all->begin(), all->end(), [](const Family& a, const Family& b) {
      return absl::string_view(a.model_type) < b.model_type;
    });
    return all;
  }();
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
      {"num_mtp_modules", "num_nextn_predict_layers"},
  };
  const std::string path =
      family.text_key == nullptr ? "" : absl::StrCat(family.text_key, ".");
  for (const auto& [name, key] : family.names) {
    if (name == native) return absl::StrCat(path, key);
  }
  for (const auto& [name, key] : kUsual) {
    if (name == native) return absl::StrCat(path, key);
  }
  return std::string(native);
}

absl::StatusOr<const Family*> FamilyOf(absl::string_view label,
                                       const JsonFields& file,
                                       const std::string& model_type) {
  std::vector<std::string> known;
  for (const Family& family : Families()) {
    if (model_type == family.model_type) return &family;
    known.push_back(family.model_type);
  }
  if (model_type.empty() && file.Has("quantization")) {
    return absl::InvalidArgumentError(absl::StrCat(
        label,
        ": model_type is missing: the file describes the number format "
        "of a checkpoint, expected the config.json of the same folder"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      label, ": model_type is ",
      model_type.empty() ? "missing"
                         : absl::StrCat("\"", model_type.substr(0, 80), "\""),
      ", expected one of: ", absl::StrJoin(known, ", "),
      model_type.empty() ? "" : DidYouMean(model_type, known)));
}

// Checks the checkpoint's class, by default the first supported one.
void CheckArchitecture(JsonFields& fields, const Family& family) {
  const std::vector<std::string> found = fields.Texts("architectures");
  const std::vector<std::string>& known = family.architectures;
  if (found.empty() || known.empty() ||
      std::find(known.begin(), known.end(), found.front()) != known.end()) {
    return;
  }
  fields.Add("architectures",
             absl::StrCat("is \"", found.front().substr(0, 80),
                          "\", expected one of: ", absl::StrJoin(known, ", ")));
}

// Adds the encoder of a vision-language model, if the file describes it.
void ReadEncoder(const Family& family, JsonFields& file, Model* model) {
  if (family.read_encoder == nullptr) return;
  for (const char* key :
       {"multimodal_projector_bias", "projector_hidden_act",
        "projector_hidden_size", "mm_tokens_per_image", "image_seq_length",
        "language_model_only", "tie_word_embeddings"}) {
    file.Mentions(key);
  }
  if (file.Object("audio_config") != nullptr) {
    file.Add("audio_config",
             "is given, expected null: weir does not support audio encoders");
  }
  const nlohmann::json* found = file.Object("vision_config");
  if (found == nullptr) {
    model->add_notes(
        "the file has no vision_config: the model is read without its encoder");
    return;
  }
  JsonFields vision = file.Inside(*found, "vision_config.");
  Encoder* encoder = model->mutable_transformer()->mutable_encoder();
  family.read_encoder(vision, encoder);
  vision.CheckUnknown();
}

// Notes that a quantized checkpoint is read in the sizes of the model.
void NoteFormat(const JsonFields& file, const JsonFields& text, Model* model) {
  if (!file.Has("quantization_config") && !text.Has("quantization_config") &&
      !file.Has("expert_dtype")) {
    return;
  }
  model->add_notes(
      "the checkpoint is quantized; its number format is not one of training "
      "and changes no size");
}

}  // namespace

absl::StatusOr<Model> ParseHuggingFace(absl::string_view label,
                                       absl::string_view text) {
  ASSIGN_OR_RETURN(const nlohmann::json object, ParseJsonObject(label, text));
  Problems problems(label);
  JsonFields file(object, &problems);
  const std::string model_type = file.Text("model_type", "");
  RETURN_IF_ERROR(problems.ToStatus());
  ASSIGN_OR_RETURN(const Family* family, FamilyOf(label, file, model_type));
  Model model;
  // Checkpoints are named "owner/name".
  const std::string name = file.Text("_name_or_path", "");
  model.set_name(name.substr(name.rfind('/') + 1));
  CheckArchitecture(file, *family);
  if (family->text_key == nullptr) {
    family->read({file, model.mutable_transformer()});
    NoteFormat(file, file, &model);
  } else {
    const nlohmann::json* inner = file.Object(family->text_key);
    if (inner == nullptr) {
      file.Add(family->text_key, "is missing, expected an object");
      return problems.ToStatus();
    }
    nlohmann::json language = *inner;
    // The file may say this for both parts.
    if (!language.contains("tie_word_embeddings") &&
        file.Has("tie_word_embeddings")) {
      language["tie_word_embeddings"] = object["tie_word_embeddings"];
    }
    JsonFields fields =
        file.Inside(language, absl::StrCat(family->text_key, "."));
    family->read({fields, model.mutable_transformer()});
    fields.CheckUnknown();
    ReadEncoder(*family, file, &model);
    NoteFormat(file, fields, &model);
  }
  file.CheckUnknown();
  CheckTransformer(
      model.transformer(),
      [&](absl::string_view native) { return KeyOf(*family, native); },
      &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  return model;
}

}  // namespace weir::models
