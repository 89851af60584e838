// SPDX-License-Identifier: Apache-2.0
// Range checks shared by all the forms in which a transformer comes in.
#ifndef WEIR_MODELS_MODEL_LIMITS_H_
#define WEIR_MODELS_MODEL_LIMITS_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "models/model.pb.h"

namespace weir {

inline constexpr int kMaxLayers = 10000;
inline constexpr double kMaxSeconds = 1e6;
inline constexpr double kMaxBytes = 1e16;

// What the user's file calls a field of weir.Transformer.
using FieldName = std::function<std::string(absl::string_view native)>;

// Notes everything wrong with a transformer whose zeros still stand for
// defaults (or are filled in already).
void CheckTransformer(const Transformer& transformer, const FieldName& name,
                      Problems* problems);

void CheckMeasured(const MeasuredModel& measured, Problems* problems);

}  // namespace weir

#endif  // WEIR_MODELS_MODEL_LIMITS_H_
