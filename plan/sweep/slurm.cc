// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/slurm.h"

#include <wordexp.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/child_program.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/status_macros.h"

namespace weir::plan {
namespace {

std::string ShellWord(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

constexpr double kLimitSeconds = 300;  // longer than Slurm's own timeouts

struct CommandResult {
  int exit_code = -1;
  std::string out, err;
};

absl::StatusOr<CommandResult> Run(const std::vector<std::string>& words) {
  ASSIGN_OR_RETURN(const ScratchFile out, ScratchFile::Make());
  ASSIGN_OR_RETURN(const ScratchFile err, ScratchFile::Make());
  ASSIGN_OR_RETURN(
      const ChildEnd end,
      RunChildProgram(words, out.path(), kLimitSeconds, err.path()));
  CommandResult ran;
  ran.exit_code = end.exit_code;
  ASSIGN_OR_RETURN(ran.out, ReadFile(out.path()));
  ASSIGN_OR_RETURN(ran.err, ReadFile(err.path()));
  return ran;
}

// Splits text like a shell, with quotes, but runs nothing: wordexp refuses
// command substitutions and operators such as ; and |.
absl::StatusOr<std::vector<std::string>> SplitWords(const std::string& text) {
  wordexp_t found = {};
  const int failed = wordexp(text.c_str(), &found, WRDE_NOCMD | WRDE_UNDEF);
  if (failed != 0) {
    if (failed == WRDE_NOSPACE) wordfree(&found);
    return absl::InvalidArgumentError(absl::StrCat(
        "--slurm-args is \"", text,
        "\", expected words such as \"--partition=big --comment='two words'\", "
        "without commands, operators or undefined variables"));
  }
  std::vector<std::string> words(found.we_wordv,
                                 found.we_wordv + found.we_wordc);
  wordfree(&found);
  return words;
}

// Escapes a path for sbatch's --output, in which % starts a symbol.
std::string WithoutSymbols(absl::string_view path) {
  return absl::StrReplaceAll(path, {{"%", "%%"}});
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
  if (FindProgram("sbatch").empty()) {
    return absl::UnavailableError(
        "sbatch is not found: --slurm needs the Slurm client (Debian: "
        "slurm-client); without it, --shard I/N runs a part of the sweep");
  }
  const std::string script = absl::StrCat(sweep.folder, "/sweep.sbatch");
  std::vector<std::string> words = {
      "sbatch", "--parsable",
      absl::StrCat("--output=", WithoutSymbols(sweep.folder), "/slurm-%a.log")};
  ASSIGN_OR_RETURN(const std::vector<std::string> more,
                   SplitWords(sweep.sbatch_args));
  words.insert(words.end(), more.begin(), more.end());
  words.push_back(script);
  ReplaceOptions replace;
  replace.force = sweep.force;
  RETURN_IF_ERROR(WriteOutput(script, SlurmScript(sweep), replace));
  ASSIGN_OR_RETURN(const CommandResult ran, Run(words));
  // "123;cluster"
  const std::string job = std::string(
      absl::StripAsciiWhitespace(*absl::StrSplit(ran.out, ';').begin()));
  if (ran.exit_code == 0 && !job.empty()) return job;
  return absl::UnavailableError(absl::StrCat(
      "sbatch rejected the job: ", absl::StripAsciiWhitespace(ran.err)));
}

bool SlurmJobHasEnded(const std::string& job) {
  const absl::StatusOr<CommandResult> ran = Run(
      {"squeue", "--noheader", "--format=%T", absl::StrCat("--jobs=", job)});
  if (!ran.ok()) return false;
  // Slurm forgets old jobs. An unreachable controller may come back.
  if (absl::StrContains(ran->err, "Invalid job id")) return true;
  return ran->exit_code == 0 &&
         absl::StripAsciiWhitespace(absl::StrCat(ran->out, ran->err)).empty();
}

}  // namespace weir::plan
