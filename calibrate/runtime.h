// SPDX-License-Identifier: Apache-2.0
// Loading descriptions of training frameworks.
#ifndef WEIR_CALIBRATE_RUNTIME_H_
#define WEIR_CALIBRATE_RUNTIME_H_

#include <string>

#include "absl/status/statusor.h"
#include "calibrate/runtime.pb.h"

namespace weir {

// A preset ("megatron-lm") or a textproto file, validated. "none" adds nothing
// and fuses all it can.
absl::StatusOr<Runtime> LoadRuntime(const std::string& name_or_path);

}  // namespace weir

#endif  // WEIR_CALIBRATE_RUNTIME_H_
