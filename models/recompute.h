// SPDX-License-Identifier: Apache-2.0
// What a backward recomputes (docs/recomputation.md).
#ifndef WEIR_MODELS_RECOMPUTE_H_
#define WEIR_MODELS_RECOMPUTE_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "models/training.pb.h"

namespace weir::models {

// A choice of what to recompute. Choices with the same effect are equal.
class Recompute {
 public:
  Recompute(RecomputeMode mode = RECOMPUTE_NONE) : mode_(mode) {}  // NOLINT
  // Ignores modules of other modes than selective, and methods of other modes
  // than full.
  explicit Recompute(const Recomputation& given);

  RecomputeMode mode() const { return mode_; }
  // Returns true if the mode is selective and the module is among its modules.
  bool Has(RecomputeModule module) const;
  // Returns true if the blocks of a stage differ, or groups of them are
  // recomputed together, so that the work of a block depends on its stage.
  bool by_stage() const { return method_ != RECOMPUTE_METHOD_UNSPECIFIED; }
  // Both are 0 unless by_stage().
  RecomputeMethod method() const { return method_; }
  int num_layers() const { return num_layers_; }

  Recomputation ToProto() const;
  auto operator<=>(const Recompute&) const = default;

 private:
  RecomputeMode mode_;
  uint32_t modules_ = 0;  // bits; 0: core attention
  RecomputeMethod method_ = RECOMPUTE_METHOD_UNSPECIFIED;
  int num_layers_ = 0;
};

// Returns Megatron-LM's names: "core_attn", "uniform". "every" is weir's.
const char* Name(RecomputeModule module);
const char* Name(RecomputeMethod method);

// Returns for example "none", "selective", "selective:mlp+moe",
// "full:block=4".
std::string RecomputeText(const Recompute& recompute);
// Returns false if the text is none of these.
bool ParseRecomputation(absl::string_view text, Recomputation* parsed);

}  // namespace weir::models

#endif  // WEIR_MODELS_RECOMPUTE_H_
