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

struct EmittedFiles {
  std::vector<EmittedFile> files;
  std::vector<std::string> warnings;  // about frameworks that cannot run it
};

absl::StatusOr<EmittedFiles> FilesOf(
    const scenarios::ResolvedScenario& scenario, const OutputFlags& output) {
  EmittedFiles emitted;
  const std::string name =
      std::filesystem::path(output.emit_to).filename().string();
  for (const std::string& word : output.emit) {
    ASSIGN_OR_RETURN(const plan::Framework framework,
                     plan::FindFramework(word));
    const absl::StatusOr<plan::ExportedRun> run =
        plan::ExportRun(framework, scenario, name);
    if (absl::IsFailedPrecondition(run.status())) {
      emitted.warnings.push_back(absl::StrCat("no ", output.emit_to,
                                              plan::SuffixOf(framework),
                                              ", as ", run.status().message()));
      continue;
    }
    RETURN_IF_ERROR(run.status());
    const std::string path = absl::StrCat(output.emit_to, run->suffix);
    emitted.files.push_back({path, MarkText(run->contents), ReplaceOf(output)});
    if (!run->needs_csv) continue;
    ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                     sim::ScheduleOfScenario(scenario, 1));
    ReplaceOptions replace = ReplaceOf(output);
    replace.companion = path;
    emitted.files.push_back({absl::StrCat(output.emit_to, ".csv"),
                             schedules::PrintCsv(schedule), replace});
  }
  return emitted;
}

}  // namespace

absl::Status CheckEmitted(const scenarios::ResolvedScenario& scenario,
                          const OutputFlags& output) {
  ASSIGN_OR_RETURN(const EmittedFiles emitted, FilesOf(scenario, output));
  for (const EmittedFile& file : emitted.files) {
    RETURN_IF_ERROR(CheckOutput(file.path, file.replace));
  }
  for (const std::string& warning : emitted.warnings) {
    PrintWarning(warning, output);
  }
  return absl::OkStatus();
}

absl::Status WriteEmitted(const scenarios::ResolvedScenario& scenario,
                          const OutputFlags& output) {
  ASSIGN_OR_RETURN(const EmittedFiles emitted, FilesOf(scenario, output));
  // Replaces a CSV only with the file that names it, which comes first.
  for (auto file = emitted.files.rbegin(); file != emitted.files.rend();
       ++file) {
    RETURN_IF_ERROR(WriteOutput(file->path, file->contents, file->replace));
    PrintNote(absl::StrCat("wrote ", file->path), output);
  }
  return absl::OkStatus();
}

}  // namespace weir::cli
