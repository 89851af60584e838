// SPDX-License-Identifier: Apache-2.0
// The arguments of Megatron-LM that weir reads.
#ifndef WEIR_PLAN_FRAMEWORKS_MEGATRON_ARGUMENT_TABLE_H_
#define WEIR_PLAN_FRAMEWORKS_MEGATRON_ARGUMENT_TABLE_H_

#include <functional>
#include <map>
#include <string>

#include "plan/frameworks/megatron_settings.h"

namespace weir::plan {

// Applies a value. Returns what was expected instead, or empty on success.
using ApplyValue =
    std::function<std::string(const std::string&, MegatronSettings*)>;

struct MegatronArgument {
  bool has_value = true;
  ApplyValue take;
  bool is_list = false;   // takes all words up to the next argument
  bool is_model = false;  // describes the model, which --model replaces
};

// Returns the arguments by name, without the leading dashes.
const std::map<std::string, MegatronArgument>& MegatronArgumentTable();

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_MEGATRON_ARGUMENT_TABLE_H_
