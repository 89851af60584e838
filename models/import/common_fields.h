// SPDX-License-Identifier: Apache-2.0
// Readers of keys that many families share.
#ifndef WEIR_MODELS_IMPORT_COMMON_FIELDS_H_
#define WEIR_MODELS_IMPORT_COMMON_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/import/family.h"

namespace weir::models {

// The two spellings that a config may use for a count.
struct KeyNames {
  const char* own;
  const char* alias;
};
uint32_t CountOf(JsonFields& fields, KeyNames key, uint32_t otherwise);

// Returns a count; a missing one is a problem.
uint32_t RequiredCount(JsonFields& fields, const char* key);

// Adds a problem if a key is true.
void RefuseFlag(JsonFields& fields, const char* key);
// Adds a problem unless a key is absent or has this value.
void ExpectFlag(JsonFields& fields, const char* key, bool expected);
void ExpectCount(JsonFields& fields, const char* key, uint32_t expected);

// Sizes of Llama-like models that a file may omit.
struct LlamaDefaults {
  uint32_t feed_forward_size = 11008;
  uint32_t num_kv_heads = 0;
  uint32_t max_positions = 2048;
  uint32_t hidden_size = 4096;
  uint32_t num_layers = 32;
  uint32_t num_heads = 32;
  uint32_t vocabulary_size = 32000;
  uint32_t head_size = 0;
  bool tied = false;
};

// Reads the sizes of a causal model with RMS norms, rotary positions and gated
// feed-forward layers, and hidden_act.
void ReadLlamaLike(const LlamaDefaults& defaults, Config config);

// The same, but a missing size is a problem. `feed_forward` is the key of the
// width of dense layers; null: there are none.
void ReadSizes(Config config, const char* feed_forward = "intermediate_size",
               bool tied = false);

// Reads the name of the activation. `otherwise` is that of the class.
void ReadActivation(Config config, const char* key, const char* otherwise);

// Reads attention_bias, which covers all four projections.
void ReadAttentionBiases(Config config, bool otherwise);

// Reads how many experts process a token, and their number and width.
void ReadExperts(Config config, KeyNames number, KeyNames per_token,
                 const char* width);

// Reads num_nextn_predict_layers (or `key`).
void ReadMtpModules(Config config,
                    const char* key = "num_nextn_predict_layers");

// A name in a list of the kinds of all layers, and the kind that it means.
struct NamedKind {
  std::string type;
  BlockKind kind;
};

// Returns a kind; `letter` represents it in patterns.
BlockKind KindOf(char letter, const char* name);
// The usual kinds: every token, a sliding window of the model's
// sliding_window.
NamedKind FullKind(const char* type);
NamedKind SlidingKind(const char* type, uint32_t window);

// Sets kinds and pattern from the type of each layer, reported as those of
// `key`. The shortest pattern that repeats is used. If all layers are of one
// kind, its fields become those of the model.
void SetPattern(Config config, const char* key,
                const std::vector<std::string>& types,
                const std::vector<NamedKind>& kinds);

// Sets the pattern from the list `key`, or, if it is absent, from `otherwise`,
// which repeats.
void ReadPattern(Config config, const char* key,
                 const std::vector<std::string>& otherwise,
                 const std::vector<NamedKind>& kinds);

// Reads layer_types of models with full attention and windows of
// sliding_window. Every `full_interval`-th layer is full unless the file says
// otherwise; 0: all are.
void ReadWindows(Config config, uint32_t full_interval);

// Combines a pattern of feed-forward layers with one that is set already: `key`
// lists for each layer whether it has experts. Sets num_dense_blocks if only
// the first layers have none.
void SetExpertLayers(Config config, const char* key,
                     const std::vector<bool>& experts);

}  // namespace weir::models

#endif  // WEIR_MODELS_IMPORT_COMMON_FIELDS_H_
