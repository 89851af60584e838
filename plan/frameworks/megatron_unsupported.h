// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's arguments that change a step in ways that are not simulated.
#ifndef WEIR_PLAN_FRAMEWORKS_MEGATRON_UNSUPPORTED_H_
#define WEIR_PLAN_FRAMEWORKS_MEGATRON_UNSUPPORTED_H_

#include "absl/strings/string_view.h"

namespace weir::plan {

// Returns true if an argument, without its "--", changes the layout, time or
// memory of a step in a way that is not simulated. Arguments about learning
// rates, data, checkpoints and logs do not.
bool IsUnsupportedMegatronArgument(absl::string_view name);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_MEGATRON_UNSUPPORTED_H_
