// SPDX-License-Identifier: Apache-2.0
// Loads descriptions of training frameworks.
#ifndef WEIR_CALIBRATE_PROFILE_RUNTIME_H_
#define WEIR_CALIBRATE_PROFILE_RUNTIME_H_

#include <string>

#include "absl/status/statusor.h"
#include "calibrate/profile/runtime.pb.h"
#include "models/layer_work.h"

namespace weir::calibrate {

// Loads and validates a preset ("megatron-lm") or a textproto file. "none" adds
// no overhead and fuses all kernels.
absl::StatusOr<Runtime> LoadRuntime(const std::string& name_or_path);

// Sets the framework's fusions in `spec`. Some depend on the sizes already in
// it.
void SetFusions(const Runtime& runtime, const Transformer& transformer,
                models::WorkSpec* spec);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_RUNTIME_H_
