// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_files.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "cli/messages.h"
#include "cli/output_files.h"
#include "plan/emit.h"

namespace weir {

namespace {

constexpr uint32_t kUsualPlans = 5;
constexpr uint32_t kMaxChecked = 1000;
constexpr char kScenarioSuffix[] = ".textproto";

std::string FolderOf(const OutputFlags& output) {
  return std::string(absl::StripSuffix(output.out, "/"));
}

// Megatron-LM arguments and PyTorch CSV cannot hold weir's mark. The scenario
// file of the same plan does.
ReplaceOptions ReplacePlan(const std::string& stem, const OutputFlags& output) {
  ReplaceOptions options = ReplaceOf(output);
  options.companion = stem + kScenarioSuffix;
  return options;
}

absl::Status CheckPlan(const std::string& stem, const OutputFlags& output) {
  for (const char* suffix : {kScenarioSuffix, ".args", ".csv"}) {
    RETURN_IF_ERROR(CheckOutput(stem + suffix, ReplacePlan(stem, output)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPlanFiles(const OutputFlags& output, uint32_t num_plans) {
  if (output.out.empty()) return absl::OkStatus();
  if (num_plans == 0) num_plans = kUsualPlans;
  for (uint32_t i = 1; i <= std::min(num_plans, kMaxChecked); ++i) {
    RETURN_IF_ERROR(
        CheckPlan(absl::StrCat(FolderOf(output), "/plan-", i), output));
  }
  return absl::OkStatus();
}

absl::Status WritePlanFiles(const OutputFlags& output,
                            const std::vector<Plan>& plans) {
  if (output.out.empty()) return absl::OkStatus();
  const std::string folder = FolderOf(output);
  RETURN_IF_ERROR(CheckPlanFiles(output, static_cast<uint32_t>(plans.size())));
  for (size_t i = 0; i < plans.size(); ++i) {
    ASSIGN_OR_RETURN(const PlanFiles files,
                     FilesOfPlan(plans[i], static_cast<int>(i) + 1));
    for (const PlanFile& file : files.files) {
      const bool has_mark = absl::EndsWith(file.name, kScenarioSuffix);
      RETURN_IF_ERROR(
          WriteFile(absl::StrCat(folder, "/", file.name),
                    has_mark ? MarkText(file.contents) : file.contents));
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
