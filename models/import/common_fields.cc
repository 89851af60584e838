// SPDX-License-Identifier: Apache-2.0
#include "models/import/common_fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weir::models {
namespace {

// Pre-training rarely uses the longest context that a model supports.
constexpr uint32_t kMaxDefaultSequenceLength = 8192;
// More layers than CheckTransformer accepts.
constexpr size_t kMaxPatternLayers = 20000;

void SetUsual(Config config) {
  config.out->set_gated_feed_forward(true);
  config.out->set_rms_norm(true);
  config.out->set_causal(true);
  ReadActivation(config, "hidden_act", "silu");
}

void SetDefaultLength(Config config, uint32_t max_positions) {
  config.out->set_default_sequence_length(
      std::min(max_positions, kMaxDefaultSequenceLength));
}

}  // namespace

uint32_t CountOf(JsonFields& fields, KeyNames key, uint32_t otherwise) {
  return fields.Has(key.own) ? fields.Count(key.own, otherwise)
                             : fields.Count(key.alias, otherwise);
}

uint32_t RequiredCount(JsonFields& fields, const char* key) {
  if (!fields.Has(key)) {
    fields.Add(key, "is missing, expected a whole number");
    return 1;
  }
  return fields.Count(key, 1);
}

void RefuseFlag(JsonFields& fields, const char* key) {
  if (fields.Flag(key, false)) {
    fields.Add(key,
               "is true, expected false: weir does not support such layers");
  }
}

void ExpectFlag(JsonFields& fields, const char* key, bool expected) {
  if (fields.Flag(key, expected) == expected) return;
  fields.Add(key, absl::StrCat("is ", expected ? "false" : "true",
                               ", expected ", expected ? "true" : "false",
                               ": weir does not support such layers"));
}

void ExpectCount(JsonFields& fields, const char* key, uint32_t expected) {
  const uint32_t found = fields.Count(key, expected);
  if (found == expected) return;
  fields.Add(key, absl::StrFormat("is %d, expected %d", found, expected));
}

void ReadLlamaLike(const LlamaDefaults& defaults, Config config) {
  auto& [fields, out] = config;
  out->set_num_layers(fields.Count("num_hidden_layers", defaults.num_layers));
  out->set_hidden_size(fields.Count("hidden_size", defaults.hidden_size));
  out->set_num_heads(fields.Count("num_attention_heads", defaults.num_heads));
  out->set_num_kv_heads(
      fields.Count("num_key_value_heads", defaults.num_kv_heads));
  out->set_head_size(fields.Count("head_dim", defaults.head_size));
  out->set_feed_forward_size(
      fields.Count("intermediate_size", defaults.feed_forward_size));
  out->set_vocabulary_size(
      fields.Count("vocab_size", defaults.vocabulary_size));
  SetDefaultLength(
      config, fields.Count("max_position_embeddings", defaults.max_positions));
  out->set_tied_embeddings(fields.Flag("tie_word_embeddings", defaults.tied));
  SetUsual(config);
}

void ReadSizes(Config config, const char* feed_forward, bool tied) {
  auto& [fields, out] = config;
  out->set_num_layers(RequiredCount(fields, "num_hidden_layers"));
  out->set_hidden_size(RequiredCount(fields, "hidden_size"));
  out->set_num_heads(RequiredCount(fields, "num_attention_heads"));
  out->set_num_kv_heads(fields.Count("num_key_value_heads", 0));
  out->set_head_size(fields.Count("head_dim", 0));
  if (feed_forward != nullptr) {
    out->set_feed_forward_size(RequiredCount(fields, feed_forward));
  }
  out->set_vocabulary_size(RequiredCount(fields, "vocab_size"));
  SetDefaultLength(config, fields.Count("max_position_embeddings", 4096));
  out->set_tied_embeddings(fields.Flag("tie_word_embeddings", tied));
  SetUsual(config);
}

void ReadActivation(Config config, const char* key, const char* otherwise) {
  static constexpr std::pair<absl::string_view, Activation> kNames[] = {
      {"gelu", GELU},          {"gelu_fast", GELU},
      {"gelu_new", GELU},      {"gelu_pytorch_tanh", GELU},
      {"quick_gelu", GELU},    {"relu", RELU},
      {"relu2", SQUARED_RELU}, {"silu", SILU},
      {"situ", SILU},  // with limits, as is the next
      {"swigluoai", SILU},     {"swish", SILU}};
  const std::string name = config.fields.Text(key, otherwise);
  for (const auto& [known, activation] : kNames) {
    if (name != known) continue;
    const Activation usual = config.out->gated_feed_forward() ? SILU : GELU;
    if (activation == usual) {
      config.out->clear_activation();
    } else {
      config.out->set_activation(activation);
    }
    return;
  }
  std::string expected;
  for (const auto& [known, activation] : kNames) {
    absl::StrAppend(&expected, expected.empty() ? "" : ", ", known);
  }
  config.fields.Add(key, absl::StrCat("is \"", name.substr(0, 80),
                                      "\", expected one of: ", expected));
}

void ReadAttentionBiases(Config config, bool otherwise) {
  const bool bias = config.fields.Flag("attention_bias", otherwise);
  config.out->set_attention_bias(bias);
  config.out->set_attention_output_bias(bias);
}

void ReadExperts(Config config, KeyNames number, KeyNames per_token,
                 const char* width) {
  auto& [fields, out] = config;
  out->set_num_experts(CountOf(fields, number, 0));
  if (out->num_experts() == 0) {
    fields.Add(number.own, "is missing or 0, expected the number of experts");
    return;
  }
  out->set_experts_per_token(CountOf(fields, per_token, 0));
  out->set_expert_feed_forward_size(RequiredCount(fields, width));
}

void ReadMtpModules(Config config, const char* key) {
  config.out->set_num_mtp_modules(config.fields.Count(key, 0));
}

BlockKind KindOf(char letter, const char* name) {
  BlockKind kind;
  kind.set_letter(std::string(1, letter));
  kind.set_name(name);
  return kind;
}

NamedKind FullKind(const char* type) { return {type, KindOf('F', "full")}; }

NamedKind SlidingKind(const char* type, uint32_t window) {
  NamedKind named{type, KindOf('S', "sliding")};
  named.kind.mutable_block()->set_sliding_window(window);
  return named;
}

void SetPattern(Config config, const char* key,
                const std::vector<std::string>& types,
                const std::vector<NamedKind>& kinds) {
  auto& [fields, out] = config;
  if (types.size() != out->num_layers() || types.empty()) {
    fields.Add(key, absl::StrFormat("has %d entries, expected one for each of "
                                    "%d layers",
                                    types.size(), out->num_layers()));
    return;
  }
  std::string pattern;
  std::vector<bool> used(kinds.size(), false);
  for (size_t i = 0; i < types.size(); ++i) {
    const auto at = std::find_if(
        kinds.begin(), kinds.end(),
        [&](const NamedKind& named) { return named.type == types[i]; });
    if (at == kinds.end()) {
      std::string known;
      for (const NamedKind& named : kinds) {
        absl::StrAppend(&known, known.empty() ? "" : ", ", named.type);
      }
      fields.Add(
          key, absl::StrCat("has \"", types[i].substr(0, 80), "\" at position ",
                            i + 1, ", expected one of: ", known));
      return;
    }
    pattern += at->kind.letter();
    used[at - kinds.begin()] = true;
  }
  size_t period = 1;
  while (
      !std::equal(pattern.begin() + period, pattern.end(), pattern.begin())) {
    ++period;
  }
  // A pattern that repeats only in part is easier to read as a whole.
  if (2 * period > pattern.size()) period = pattern.size();
  const BlockKind& first =
      kinds[std::find(used.begin(), used.end(), true) - used.begin()].kind;
  if (pattern.find_first_not_of(pattern[0]) == pattern.npos &&
      !first.no_mixer() && first.feed_forward() == FEED_FORWARD_BY_POSITION) {
    out->MergeFrom(first.block());
    return;
  }
  out->set_pattern(pattern.substr(0, period));
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (used[i]) *out->add_kinds() = kinds[i].kind;
  }
}

void ReadPattern(Config config, const char* key,
                 const std::vector<std::string>& otherwise,
                 const std::vector<NamedKind>& kinds) {
  std::vector<std::string> types = config.fields.Texts(key);
  for (size_t i = 0; types.size() < config.out->num_layers() &&
                     !config.fields.Has(key) && i < kMaxPatternLayers;
       ++i) {
    types.push_back(otherwise[i % otherwise.size()]);
  }
  SetPattern(config, key, types, kinds);
}

void ReadWindows(Config config, uint32_t full_interval) {
  const uint32_t window = config.fields.Count("sliding_window", 0);
  std::vector<std::string> otherwise(full_interval > 0 ? full_interval - 1 : 0,
                                     "sliding_attention");
  otherwise.push_back("full_attention");
  ReadPattern(
      config, "layer_types", otherwise,
      {FullKind("full_attention"), SlidingKind("sliding_attention", window)});
  const bool sliding = config.out->pattern().find('S') != std::string::npos;
  if (sliding && window == 0) {
    config.fields.Add("sliding_window",
                      "is missing or 0, expected the length of the windows");
  }
}

void SetExpertLayers(Config config, const char* key,
                     const std::vector<bool>& experts) {
  auto& [fields, out] = config;
  if (experts.size() != out->num_layers()) {
    fields.Add(key, absl::StrFormat("has %d entries, expected one for each of "
                                    "%d layers",
                                    experts.size(), out->num_layers()));
    return;
  }
  const auto first = std::find(experts.begin(), experts.end(), true);
  if (std::find(first, experts.end(), false) == experts.end()) {
    out->set_num_dense_blocks(static_cast<uint32_t>(first - experts.begin()));
    return;
  }
  if (!out->pattern().empty()) {
    fields.Add(key,
               "has layers without experts after layers with experts, "
               "expected experts in all later layers");
    return;
  }
  std::vector<std::string> types;
  types.reserve(experts.size());
  for (const bool has : experts) types.push_back(has ? "experts" : "dense");
  NamedKind dense{"dense", KindOf('D', "")};
  dense.kind.set_feed_forward(FEED_FORWARD_DENSE);
  NamedKind sparse{"experts", KindOf('E', "mixture")};
  sparse.kind.set_feed_forward(FEED_FORWARD_EXPERTS);
  SetPattern(config, key, types, {dense, sparse});
}

}  // namespace weir::models
