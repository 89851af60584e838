// SPDX-License-Identifier: Apache-2.0
// The parts of MegatronArgumentTable.
#ifndef WEIR_PLAN_FRAMEWORKS_MEGATRON_ARGUMENT_GROUPS_H_
#define WEIR_PLAN_FRAMEWORKS_MEGATRON_ARGUMENT_GROUPS_H_

#include <map>
#include <string>

#include "plan/frameworks/megatron_argument_table.h"

namespace weir::plan {

// Returns the arguments that describe the model.
std::map<std::string, MegatronArgument> ModelArguments();

// Returns those of parallelism and of transfers between ranks.
std::map<std::string, MegatronArgument> ParallelArguments();

// Returns those of batch, number formats, kernels, recomputation and optimizer.
std::map<std::string, MegatronArgument> TrainingArguments();

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_MEGATRON_ARGUMENT_GROUPS_H_
