// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/plan_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "plan/frameworks/plan_files.h"

namespace weir::cli {

namespace {

constexpr uint32_t kUsualPlans = 5;
constexpr uint32_t kMaxChecked = 1000;
constexpr char kScenarioSuffix[] = ".textproto";
// The scenario is last, since its mark shows that the other files are weir's.
constexpr const char* kSuffixes[] = {".args", ".toml", ".yaml", ".csv",
                                     kScenarioSuffix};

std::string FolderOf(const OutputFlags& output) {
  return std::string(absl::StripSuffix(output.out, "/"));
}

// PyTorch's CSV cannot contain weir's mark, and files of frameworks did not in
// earlier versions. The scenario file of the same plan does.
ReplaceOptions ReplacePlan(const std::string& stem, const OutputFlags& output) {
  ReplaceOptions options = ReplaceOf(output);
  options.companion = stem + kScenarioSuffix;
  return options;
}

std::string StemOf(const OutputFlags& output, size_t rank) {
  return absl::StrCat(FolderOf(output), "/plan-", rank);
}

absl::Status CheckPlan(const std::string& stem, const OutputFlags& output) {
  for (const char* suffix : kSuffixes) {
    RETURN_IF_ERROR(CheckOutput(stem + suffix, ReplacePlan(stem, output)));
  }
  return absl::OkStatus();
}

// Removes the files of an earlier run's plan, except those that will be
// written. Keeps links and files that weir did not write, even with --force.
// Returns the number of removed files.
int RemoveStale(const std::string& stem,
                const absl::flat_hash_set<std::string>& written) {
  ReplaceOptions own;
  own.companion = stem + kScenarioSuffix;
  int num_removed = 0;
  for (const char* suffix : kSuffixes) {
    const std::string path = stem + suffix;
    std::error_code error;
    if (written.contains(path) ||
        !std::filesystem::is_regular_file(
            std::filesystem::symlink_status(path, error)) ||
        std::filesystem::is_empty(path, error) || !IsReplaceable(path, own)) {
      continue;
    }
    num_removed += std::filesystem::remove(path, error);
  }
  return num_removed;
}

absl::StatusOr<int> WritePlan(const Plan& plan, size_t rank,
                              const OutputFlags& output) {
  ASSIGN_OR_RETURN(
      const plan::PlanFiles files,
      plan::FilesOfPlan(plan, static_cast<int>(rank), output.emit));
  std::vector<plan::PlanFile> written;
  absl::flat_hash_set<std::string> paths;
  for (const plan::PlanFile& file : files.files) {
    const bool has_mark = !absl::EndsWith(file.name, ".csv");
    written.push_back({absl::StrCat(FolderOf(output), "/", file.name),
                       has_mark ? MarkText(file.contents) : file.contents});
    paths.insert(written.back().name);
  }
  // Before there is a new scenario to which an old file could seem to belong.
  const int num_removed = RemoveStale(StemOf(output, rank), paths);
  for (const plan::PlanFile& file : written) {
    RETURN_IF_ERROR(WriteFile(file.name, file.contents));
  }
  for (const std::string& warning : files.warnings) {
    PrintWarning(warning, output);
  }
  return num_removed;
}

}  // namespace

absl::Status CheckPlanFiles(const OutputFlags& output, uint32_t num_plans) {
  if (output.out.empty()) return absl::OkStatus();
  if (num_plans == 0) num_plans = kUsualPlans;
  for (uint32_t i = 1; i <= std::min(num_plans, kMaxChecked); ++i) {
    RETURN_IF_ERROR(CheckPlan(StemOf(output, i), output));
  }
  return absl::OkStatus();
}

absl::Status WritePlanFiles(const OutputFlags& output,
                            const std::vector<Plan>& plans) {
  if (output.out.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckPlanFiles(output, static_cast<uint32_t>(plans.size())));
  int num_removed = 0;
  std::string suffixes;
  for (const plan::Framework framework :
       plan::FrameworksOf(plans, output.emit)) {
    absl::StrAppend(&suffixes, plan::SuffixOf(framework), ", ");
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    ASSIGN_OR_RETURN(const int removed, WritePlan(plans[i], i + 1, output));
    num_removed += removed;
  }
  // Plans of an earlier run that found more.
  for (size_t rank = plans.size() + 1; rank <= kMaxChecked; ++rank) {
    const int removed = RemoveStale(StemOf(output, rank), {});
    if (removed == 0) break;
    num_removed += removed;
  }
  std::string note = absl::StrCat(
      "wrote ", FolderOf(output), "/plan-N.textproto, ", suffixes, ".csv (",
      plans.size(), plans.size() == 1 ? " plan)" : " plans)");
  if (num_removed > 0) {
    absl::StrAppend(&note, "; removed ", num_removed,
                    num_removed == 1 ? " file" : " files",
                    " of an earlier run");
  }
  PrintNote(note, output);
  return absl::OkStatus();
}

}  // namespace weir::cli
