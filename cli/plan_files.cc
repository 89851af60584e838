// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "cli/messages.h"
#include "plan/emit.h"

namespace weir {

absl::Status WritePlanFiles(const OutputFlags& output,
                            const std::vector<Plan>& plans) {
  if (output.out.empty()) return absl::OkStatus();
  const std::string folder(absl::StripSuffix(output.out, "/"));
  for (size_t i = 0; i < plans.size(); ++i) {
    ASSIGN_OR_RETURN(const PlanFiles files,
                     FilesOfPlan(plans[i], static_cast<int>(i) + 1));
    for (const PlanFile& file : files.files) {
      RETURN_IF_ERROR(
          WriteFile(absl::StrCat(folder, "/", file.name), file.contents));
    }
    for (const std::string& warning : files.warnings) {
      PrintWarning(warning, output);
    }
  }
  PrintNote(
      absl::StrCat("wrote ", folder, "/plan-N.textproto, .args, .csv (",
                   plans.size(), plans.size() == 1 ? " plan)" : " plans)"),
      output);
  return absl::OkStatus();
}

}  // namespace weir
