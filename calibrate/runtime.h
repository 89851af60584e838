// SPDX-License-Identifier: Apache-2.0
// Loading descriptions of training frameworks.
#ifndef WEIR_CALIBRATE_RUNTIME_H_
#define WEIR_CALIBRATE_RUNTIME_H_

#include <string>

#include "absl/status/statusor.h"
#include "calibrate/runtime.pb.h"
#include "models/layer_work.h"

namespace weir {

// A preset ("megatron-lm") or a textproto file, validated. "none" adds nothing
// and fuses all it can.
absl::StatusOr<Runtime> LoadRuntime(const std::string& name_or_path);

// What the framework fuses of a layer's work. Some of it depends on the sizes
// that are in `spec` already.
void SetFusions(const Runtime& runtime, const Transformer& transformer,
                WorkSpec* spec);

}  // namespace weir

#endif  // WEIR_CALIBRATE_RUNTIME_H_
