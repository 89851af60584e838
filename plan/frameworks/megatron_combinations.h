// SPDX-License-Identifier: Apache-2.0
// The parts of CombineSettings: combinations of arguments that describe the
// model and the stages.
#ifndef WEIR_PLAN_FRAMEWORKS_MEGATRON_COMBINATIONS_H_
#define WEIR_PLAN_FRAMEWORKS_MEGATRON_COMBINATIONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "plan/frameworks/megatron_settings.h"

namespace weir::plan {

// Reports a combination of arguments, the first of which the message names,
// unless the value of one of them was reported.
void ReportCombination(const MegatronSettings& settings,
                       const std::vector<std::string>& arguments,
                       absl::string_view what, Problems* problems);

// Sets model fields that depend on several arguments.
void FinishModel(MegatronSettings* settings, Problems* problems);

// Sets the chunks and checks that Megatron-LM accepts them.
void FinishStages(MegatronSettings* settings, Problems* problems);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_MEGATRON_COMBINATIONS_H_
