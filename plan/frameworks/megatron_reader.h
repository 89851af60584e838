// SPDX-License-Identifier: Apache-2.0
// Parts of the readers of Megatron-LM's arguments, of scripts that contain
// them, and of NeMo's settings, which have other names for them.
#ifndef WEIR_PLAN_FRAMEWORKS_MEGATRON_READER_H_
#define WEIR_PLAN_FRAMEWORKS_MEGATRON_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "plan/frameworks/imported_run.h"
#include "plan/frameworks/megatron_settings.h"
#include "plan/frameworks/shell_script.h"

namespace weir::plan {

// Reads a list of words. Words that belong to no argument are ignored. Returns
// InvalidArgument with all problems.
absl::StatusOr<ImportedRun> ReadMegatronWords(
    const std::string& label, const std::vector<ShellWord>& words,
    const ImportContext& context);

// Applies an argument, whose name has no dashes. A problem calls it `shown`. A
// value with "$", which only a shell knows, is that of the flag that replaces
// the argument, or a problem.
void TakeMegatronSetting(const Setting& setting, absl::string_view shown,
                         MegatronSettings* settings, Problems* problems);

// Moves notes, what is missing and parameters to the report.
void ReportTo(ImportReport* report, MegatronSettings* settings);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_MEGATRON_READER_H_
