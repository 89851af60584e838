// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/emit.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "plan/frameworks/exported_run.h"
#include "schedules/interop/schedule_text.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

struct EmittedFile {
  std::string path, contents;
  ReplaceOptions replace;
};

absl::StatusOr<std::vector<EmittedFile>> FilesOf(
    const scenarios::ResolvedScenario& scenario, const OutputFlags& output) {
  std::vector<EmittedFile> files;
  const std::string name =
      std::filesystem::path(output.emit_to).filename().string();
  for (const std::string& word : output.emit) {
    ASSIGN_OR_RETURN(const plan::Framework framework,
                     plan::FindFramework(word));
    ASSIGN_OR_RETURN(const plan::ExportedRun run,
                     plan::ExportRun(framework, scenario, name));
    const std::string path = absl::StrCat(output.emit_to, run.suffix);
    files.push_back({path, MarkText(run.contents), ReplaceOf(output)});
    if (!run.needs_csv) continue;
    ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                     sim::ScheduleOfScenario(scenario, 1));
    ReplaceOptions replace = ReplaceOf(output);
    replace.companion = path;
    files.push_back({absl::StrCat(output.emit_to, ".csv"),
                     schedules::PrintCsv(schedule), replace});
  }
  return files;
}

}  // namespace

absl::Status CheckEmitted(const scenarios::ResolvedScenario& scenario,
                          const OutputFlags& output) {
  ASSIGN_OR_RETURN(const std::vector<EmittedFile> files,
                   FilesOf(scenario, output));
  for (const EmittedFile& file : files) {
    RETURN_IF_ERROR(CheckOutput(file.path, file.replace));
  }
  return absl::OkStatus();
}

absl::Status WriteEmitted(const scenarios::ResolvedScenario& scenario,
                          const OutputFlags& output) {
  ASSIGN_OR_RETURN(const std::vector<EmittedFile> files,
                   FilesOf(scenario, output));
  // Replaces a CSV only with the file that names it, which comes first.
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    RETURN_IF_ERROR(WriteOutput(file->path, file->contents, file->replace));
    PrintNote(absl::StrCat("wrote ", file->path), output);
  }
  return absl::OkStatus();
}

}  // namespace weir::cli
