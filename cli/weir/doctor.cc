// SPDX-License-Identifier: Apache-2.0
// SimGrid      3.32
// CUDA         not found (only calibration needs it)
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/assets.h"
#include "base/version.h"
#include "cli/options/messages.h"
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

std::string Line(absl::string_view what, const std::string& found,
                 absl::string_view missing) {
  return absl::StrFormat(
      "%-13s %s\n", what,
      found.empty() ? absl::StrCat("not found: ", missing) : found);
}

std::string Libraries() {
  return absl::StrCat(
      Line("weir", absl::StrCat(WeirVersion(), " (git ", GitRevision(), ")"),
           ""),
      Line("SimGrid", sim::SimGridVersion(), ""),
      Line("protobuf", ProtobufVersion(), ""),
      Line("Abseil", AbseilVersion(), ""), Line("compiler", __VERSION__, ""));
}

}  // namespace

int RunDoctor(const Flags& flags) {
  const size_t num_presets = ListAssets("models/presets").size() +
                             ListAssets("scenarios/presets").size();
  const std::string text = absl::StrCat(
      Libraries(),
      Line("presets", num_presets == 0 ? "" : absl::StrCat(num_presets),
           "this program was built without presets"),
      Line("CUDA",
           FindFile({"/usr/local/cuda/include/cuda_runtime.h",
                     "/usr/include/cuda_runtime.h"}),
           "needed only for calibration"),
      Line("NCCL",
           FindFile({"/usr/include/nccl.h", "/usr/local/include/nccl.h",
                     "/usr/local/cuda/include/nccl.h"}),
           "needed only for calibration"),
      Line("GPU", FindFile({"/dev/nvidia0"}), "needed only for calibration"),
      Line("Slurm", FindAnyOf({"sbatch"}),
           "needed only for sweeps on a cluster"),
      Line("clang-format", FindAnyOf({"clang-format-14"}),
           "version 14 is needed only to change weir"));
  const absl::Status printed = PrintResult(text);
  if (!printed.ok()) return PrintError(printed, flags.output);
  return num_presets == 0 ? kExitMissing : kExitOk;
}

}  // namespace weir::cli
