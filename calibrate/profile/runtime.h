// SPDX-License-Identifier: Apache-2.0
// Loads descriptions of training frameworks.
#ifndef WEIR_CALIBRATE_PROFILE_RUNTIME_H_
#define WEIR_CALIBRATE_PROFILE_RUNTIME_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/profile/runtime.pb.h"
#include "models/layer_work.h"

namespace weir::calibrate {

// Loads and validates a preset ("megatron-lm") or a textproto file, with the
// fields that it inherits from its base. "none" adds no overhead and fuses all
// kernels. Returns NotFound if there is neither, and InvalidArgument with all
// problems of the runtime.
absl::StatusOr<Runtime> LoadRuntime(const std::string& name_or_path);

// Reports all problems of a runtime at once. Returns InvalidArgument with them.
absl::Status ValidateRuntime(absl::string_view label, const Runtime& runtime);

// Sets the framework's fusions in `spec`. Some depend on the sizes already in
// it.
void SetFusions(const Runtime& runtime, const Transformer& transformer,
                models::WorkSpec* spec);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_RUNTIME_H_
