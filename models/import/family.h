// SPDX-License-Identifier: Apache-2.0
// Families of models in Hugging Face's format, one for each model_type.
#ifndef WEIR_MODELS_IMPORT_FAMILY_H_
#define WEIR_MODELS_IMPORT_FAMILY_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "models/import/json_fields.h"
#include "models/model.pb.h"

namespace weir::models {

// The object of a config.json that describes a language model, and the model
// that is read from it.
struct Config {
  JsonFields& fields;
  Transformer* out;
};

struct Family {
  const char* model_type;
  std::vector<std::string> architectures;  // supported classes
  void (*read)(Config config);
  // Key of the object that describes the language model; null: the whole file.
  const char* text_key = nullptr;
  // Reads the encoder from the whole file; null: the family has none.
  void (*read_encoder)(JsonFields& file, Encoder* encoder) = nullptr;
  // Pairs of native field and this family's key, if it is not the usual one.
  std::vector<std::pair<absl::string_view, const char*>> names = {};
};

// Families by what is special about them.
std::vector<Family> EarlyFamilies();   // GPT-2, BERT
std::vector<Family> DenseFamilies();   // attention and feed-forward layers
std::vector<Family> ExpertFamilies();  // mixtures of experts
std::vector<Family> MixedFamilies();   // the same, with layers that differ
std::vector<Family> LatentFamilies();  // compressed keys and values
std::vector<Family> HybridFamilies();  // linear recurrences
std::vector<Family> VisionFamilies();  // an encoder and a language model

// Readers of the language models of several families.
void ReadQwen3(Config config);
void ReadQwen3Moe(Config config);
void ReadQwen35(Config config);
void ReadQwen35Moe(Config config);
void ReadGemma3(Config config);
void ReadGemma4(Config config);
void ReadLlama4(Config config);
void ReadMiniMaxM3(Config config);
void ReadDeepSeekV3(Config config);
void ReadKimiLinear(Config config);

}  // namespace weir::models

#endif  // WEIR_MODELS_IMPORT_FAMILY_H_
