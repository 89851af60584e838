// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/slurm.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/output_file.h"
#include "base/status_macros.h"

namespace weir {
namespace {

std::string ShellWord(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

struct Ran {
  int status = -1;  // as of waitpid
  std::string out;
};

Ran RunShell(const std::string& line) {
  Ran ran;
  std::FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    ran.out.append(buffer, n);
  }
  ran.status = pclose(pipe);
  return ran;
}

}  // namespace

std::string SlurmScript(const SlurmSweep& sweep) {
  return absl::StrCat(
      "#!/bin/sh\n", MarkText("#SBATCH --job-name=weir-sweep\n"),
      "#SBATCH --array=0-", sweep.num_nodes - 1,
      "\n#SBATCH --nodes=1\n"
      "#SBATCH --ntasks=1\n"
      "#SBATCH --exclusive\n"
      "#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n"
      "echo \"shard $SLURM_ARRAY_TASK_ID on $SLURMD_NODENAME, restarted "
      "${SLURM_RESTART_COUNT:-0} times\"\n"
      "exec ",
      ShellWord(sweep.program), " sweep ", ShellWord(sweep.file), " --out ",
      ShellWord(sweep.folder), " --shard \"$SLURM_ARRAY_TASK_ID/",
      sweep.num_nodes,
      "\" --resume \\\n"
      "  --jobs \"${SLURM_CPUS_ON_NODE:-1}\"",
      sweep.time_limit_seconds < kNoTimeLimit
          ? absl::StrCat(" --time-limit ", sweep.time_limit_seconds)
          : "",
      "\n");
}

absl::StatusOr<std::string> SubmitToSlurm(const SlurmSweep& sweep) {
  if (std::system("command -v sbatch >/dev/null 2>&1") != 0) {
    return absl::UnavailableError(
        "sbatch is not found: --slurm needs a Slurm cluster's client (Debian: "
        "slurm-client); without one, --shard I/N runs a part of the sweep");
  }
  const std::string script = absl::StrCat(sweep.folder, "/sweep.sbatch");
  ReplaceOptions replace;
  replace.force = sweep.force;
  RETURN_IF_ERROR(WriteOutput(script, SlurmScript(sweep), replace));
  const Ran ran = RunShell(
      absl::StrCat("sbatch --parsable --output=",
                   ShellWord(absl::StrCat(sweep.folder, "/slurm-%a.log")), " ",
                   sweep.sbatch_args, " ", ShellWord(script)));
  // "123;cluster"
  const std::string job = std::string(
      absl::StripAsciiWhitespace(*absl::StrSplit(ran.out, ';').begin()));
  if (ran.status == 0 && !job.empty()) return job;
  return absl::UnavailableError(
      "sbatch did not take the job (it says why above)");
}

bool SlurmJobHasEnded(const std::string& job) {
  const Ran ran = RunShell(absl::StrCat(
      "timeout --foreground 60 squeue --noheader --format=%T --jobs=",
      ShellWord(job), " 2>&1"));
  // Slurm forgets old jobs. A controller that does not answer may come back.
  if (absl::StrContains(ran.out, "Invalid job id")) return true;
  return ran.status == 0 && absl::StripAsciiWhitespace(ran.out).empty();
}

}  // namespace weir
