// SPDX-License-Identifier: Apache-2.0
// SimGrid      3.32
// CBC          not found
//
// commands that do not work here      missing  remedy
// weir schedule synthesize (proofs)   CBC      apt-get install coinor-cbc
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/assets.h"
#include "base/text_table.h"
#include "base/version.h"
#include "cli/options/messages.h"
#include "cli/options/picture_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/versions.h"
#include "sim/engine/engine.h"

namespace weir::cli {
namespace {

// Returns the first of the programs that is in PATH; empty if none is.
std::string FindAnyOf(const std::vector<std::string>& names) {
  const char* path = std::getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path ? path : "", ':')) {
    for (const std::string& name : names) {
      std::string file = absl::StrCat(folder, "/", name);
      if (access(file.c_str(), X_OK) == 0) return file;
    }
  }
  return "";
}

// Returns the first of the files that exists; empty if none does.
std::string FindFile(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) return file;
  }
  return "";
}

// Returns the path of weir-calibrate: in PATH, or in the folder of this
// program.
std::string FindCalibrate() {
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string sibling =
      error ? "" : (program.parent_path() / "weir-calibrate").string();
  const std::string found = FindAnyOf({"weir-calibrate"});
  return found.empty() ? FindFile({sibling}) : found;
}

// A program or library that commands of README.md need.
struct Need {
  std::string name;
  std::string found;  // its path; empty: missing
  std::vector<std::string> commands;
  std::string remedy;
};

std::vector<Need> Needs() {
  const std::string calibrate = FindCalibrate();
  const std::string cuda = FindFile({"/usr/local/cuda/include/cuda_runtime.h",
                                     "/usr/include/cuda_runtime.h"});
  const std::string nccl =
      FindFile({"/usr/include/nccl.h", "/usr/local/include/nccl.h",
                "/usr/local/cuda/include/nccl.h"});
  const std::vector<std::string> on_gpu = {"weir-calibrate run",
                                           "weir-calibrate replay (on GPUs)"};
  return {
      {"rsvg-convert",
       FindAnyOf({kPictureConverter}),
       {"weir draw (PDF and PNG)"},
       "apt-get install librsvg2-bin"},
      {"CBC",
       FindAnyOf({"cbc"}),
       {"weir schedule synthesize (proofs)"},
       "apt-get install coinor-cbc"},
      {"Slurm",
       FindAnyOf({"sbatch"}),
       {"weir sweep --slurm"},
       "apt-get install slurm-client, on a Slurm cluster"},
      {"weir-calibrate",
       calibrate,
       {"weir-calibrate replay --cpu", "weir-calibrate run"},
       "cmake --build --preset release --target weir-calibrate"},
      {"CUDA", cuda, on_gpu, "install CUDA, build weir-calibrate again"},
      {"NCCL", nccl, on_gpu,
       "apt-get install libnccl-dev (NVIDIA), build "
       "weir-calibrate again"},
      {"GPU", FindFile({"/dev/nvidia0"}), on_gpu, "run on a GPU machine"},
  };
}

std::string CommandsText(const std::vector<Need>& needs) {
  TextTable table;
  table.header = {"commands that do not work here", "missing", "remedy"};
  table.left = {true, true, true};
  for (const Need& need : needs) {
    if (!need.found.empty()) continue;
    table.rows.push_back(
        {absl::StrJoin(need.commands, ", "), need.name, need.remedy});
  }
  if (table.rows.empty()) return "every command of README.md works here\n";
  return absl::StrCat(PrintTable(table),
                      "All other commands of README.md work.\n");
}

}  // namespace

int RunDoctor(const Flags& flags) {
  const size_t num_presets = ListAssets("models/presets").size() +
                             ListAssets("scenarios/presets").size();
  const std::vector<Need> needs = Needs();
  TextTable found;
  found.header = {"weir",
                  absl::StrCat(WeirVersion(), " (git ", GitRevision(), ")")};
  found.left = {true, true};
  found.rows = {
      {"SimGrid", sim::SimGridVersion()},
      {"protobuf", ProtobufVersion()},
      {"Abseil", AbseilVersion()},
      {"compiler", __VERSION__},
      {"presets", num_presets == 0 ? "this program was built without presets"
                                   : absl::StrCat(num_presets)}};
  for (const Need& need : needs) {
    found.rows.push_back(
        {need.name, need.found.empty() ? "not found" : need.found});
  }
  const std::string text =
      absl::StrCat(PrintTable(found), "\n", CommandsText(needs));
  const absl::Status printed = PrintResult(text);
  if (!printed.ok()) return PrintError(printed, flags.output);
  return num_presets == 0 ? kExitMissing : kExitOk;
}

}  // namespace weir::cli
