// SPDX-License-Identifier: Apache-2.0
#include "models/model.h"

#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/assets.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"
#include "models/import/hugging_face.h"
#include "models/import/pipedream_graph.h"
#include "models/model_limits.h"

namespace weir::models {
namespace {

constexpr size_t kMaxTextBytes = 64 << 20;
constexpr uint32_t kUsualSequenceLength = 2048;
constexpr char kConfig[] = "config.json";
constexpr char kQuantization[] = "hf_quant_config.json";

// Returns "gpt2" for "models/gpt2.json" and "owner--gpt2_config.json". Every
// Hugging Face model has a config.json, which is named after its folder.
std::string NameOfFile(absl::string_view label) {
  const std::filesystem::path path{std::string(label)};
  std::string folder = path.parent_path().filename().string();
  if (path.filename() != kConfig || folder.empty() || folder == "." ||
      folder == "..") {
    std::string stem = path.stem().string();
    absl::string_view name = stem;
    if (!absl::ConsumeSuffix(&name, "_config")) return stem;
    const size_t owner = name.find("--");
    if (owner != name.npos) name.remove_prefix(owner + 2);
    return name.empty() ? stem : std::string(name);
  }
  return folder;
}

void FillSizes(Transformer* transformer) {
  if (transformer->num_kv_heads() == 0) {
    transformer->set_num_kv_heads(transformer->num_heads());
  }
  if (transformer->head_size() == 0) {
    transformer->set_head_size(transformer->hidden_size() /
                               transformer->num_heads());
  }
  if (transformer->feed_forward_size() == 0) {
    transformer->set_feed_forward_size(4 * transformer->hidden_size());
  }
  if (transformer->num_experts() > 0) {
    if (transformer->expert_feed_forward_size() == 0) {
      transformer->set_expert_feed_forward_size(
          transformer->feed_forward_size());
    }
    if (transformer->expert_block_interval() == 0) {
      transformer->set_expert_block_interval(1);
    }
  }
}

void FillDefaults(absl::string_view label, Model* model) {
  if (model->name().empty()) model->set_name(NameOfFile(label));
  if (model->has_measured()) {
    MeasuredModel& measured = *model->mutable_measured();
    if (measured.microbatch_size() == 0) measured.set_microbatch_size(1);
    return;
  }
  Transformer& transformer = *model->mutable_transformer();
  FillSizes(&transformer);
  if (transformer.has_encoder()) {
    FillSizes(transformer.mutable_encoder()->mutable_blocks());
  }
  if (transformer.default_sequence_length() == 0) {
    transformer.set_default_sequence_length(transformer.num_positions() != 0
                                                ? transformer.num_positions()
                                                : kUsualSequenceLength);
  }
}

absl::StatusOr<Model> ParseAny(absl::string_view label,
                               absl::string_view text) {
  const absl::string_view content = absl::StripLeadingAsciiWhitespace(text);
  if (content.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        label,
        ": is empty, expected a weir.Model, a Hugging Face config.json "
        "or a PipeDream profile graph"));
  }
  if (content[0] == '{') return ParseHuggingFace(label, text);
  // No field of weir.Model begins with this.
  if (absl::StartsWith(content, "node"))
    return ParsePipeDreamGraph(label, text);
  Model model;
  RETURN_IF_ERROR(ParseTextProto(label, text, &model));
  return model;
}

}  // namespace

std::string ModelFile(const std::string& name_or_path) {
  std::error_code error;
  const std::filesystem::path path(name_or_path);
  // The description of a number format is in the folder of the model.
  if (absl::EndsWith(name_or_path, kQuantization)) {
    std::string config =
        absl::StrCat(absl::StripSuffix(name_or_path, kQuantization), kConfig);
    if (std::filesystem::is_regular_file(config, error)) return config;
  }
  if (!std::filesystem::is_directory(path, error) ||
      FindPreset("models/presets", name_or_path).has_value() ||
      !std::filesystem::is_regular_file(path / kConfig, error)) {
    return name_or_path;
  }
  return (path / kConfig).string();
}

absl::StatusOr<Model> LoadModel(const std::string& name_or_path) {
  const std::string file = ModelFile(name_or_path);
  std::error_code error;
  if (std::filesystem::is_directory(file, error) &&
      !FindPreset("models/presets", file).has_value()) {
    return absl::NotFoundError(
        absl::StrCat(EscapeLine(file),
                     ": is a folder, expected a file, or a "
                     "folder with a config.json"));
  }
  ASSIGN_OR_RETURN(const Asset asset, LoadAsset("models/presets", file));
  return ParseModel(asset.label, asset.contents);
}

absl::StatusOr<Model> ParseModel(absl::string_view label,
                                 absl::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": has ", text.size(), " bytes, expected at most ",
        kMaxTextBytes, ": a model file describes layers, it holds no weights"));
  }
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  ASSIGN_OR_RETURN(Model model, ParseAny(label, text));
  return CompleteModel(label, std::move(model));
}

absl::StatusOr<Model> CompleteModel(absl::string_view label, Model model) {
  RETURN_IF_ERROR(ValidateModel(label, model));
  FillDefaults(label, &model);
  return model;
}

absl::Status ValidateModel(absl::string_view label, const Model& model) {
  Problems problems(label);
  switch (model.kind_case()) {
    case Model::kTransformer:
      CheckTransformer(
          model.transformer(),
          [](absl::string_view f) { return absl::StrCat("transformer.", f); },
          &problems);
      break;
    case Model::kMeasured:
      CheckMeasured(model.measured(), &problems);
      break;
    case Model::KIND_NOT_SET:
      problems.Add("", "has neither transformer nor measured");
  }
  return problems.ToStatus();
}

uint32_t DefaultSequenceLength(const Model& model) {
  return model.transformer().default_sequence_length();
}

}  // namespace weir::models
