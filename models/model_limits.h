// SPDX-License-Identifier: Apache-2.0
// Range checks shared by all input formats of transformers.
#ifndef WEIR_MODELS_MODEL_LIMITS_H_
#define WEIR_MODELS_MODEL_LIMITS_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "models/model.pb.h"

namespace weir::models {

inline constexpr int kMaxLayers = 10000;
inline constexpr double kMaxSeconds = 1e6;
inline constexpr double kMaxBytes = 1e16;

// Returns the name of a field of weir.Transformer in the user's file.
using FieldName = std::function<std::string(absl::string_view native)>;

// Reports all problems of a transformer. Zeros may represent defaults, or be
// filled in already.
void CheckTransformer(const Transformer& transformer, const FieldName& name,
                      Problems* problems);

// Reports groups of experts that do not divide them, or that have too few.
void CheckRouterGroups(const Transformer& transformer, const FieldName& name,
                       Problems* problems);

// Reports attention heads that do not divide the hidden size or that key-value
// heads do not divide.
void CheckHeads(const Transformer& transformer, const FieldName& name,
                Problems* problems);

void CheckMeasured(const MeasuredModel& measured, Problems* problems);

}  // namespace weir::models

#endif  // WEIR_MODELS_MODEL_LIMITS_H_
