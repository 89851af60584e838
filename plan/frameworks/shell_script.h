// SPDX-License-Identifier: Apache-2.0
// Reads shell scripts that start a training run, without running anything.
#ifndef WEIR_PLAN_FRAMEWORKS_SHELL_SCRIPT_H_
#define WEIR_PLAN_FRAMEWORKS_SHELL_SCRIPT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::plan {

struct ShellWord {
  std::string text;
  int line = 0;
};

using ShellCommand = std::vector<ShellWord>;

struct ShellScript {
  // In the order of the text. Conditions are not evaluated: the commands of all
  // branches are here. The commands inside a quoted word ("bash -c '...'")
  // follow those that contain them.
  std::vector<ShellCommand> commands;
  std::vector<ShellWord> directives;             // words of "#SBATCH" lines
  std::map<std::string, std::string> variables;  // after the last assignment
  bool has_conditions = false;
};

// Reads quotes, comments, continued lines, assignments of variables and arrays,
// and "$NAME", "${NAME}", "${NAME[@]}" and "${NAME:-default}" of variables that
// the script or `given` sets; an assignment of the script replaces a given one
// unless it only has a default. Everything else that a shell would evaluate,
// such as "$(command)", stays as text. Returns InvalidArgument with the line
// for a quote that does not end, and if expansions become too long.
absl::StatusOr<ShellScript> ReadShellScript(
    const std::string& label, absl::string_view text,
    const std::map<std::string, std::string>& given);

// Reads the words of a list of arguments, like xargs: quotes, comments and
// continued lines, everything else as it is. Returns InvalidArgument with the
// line for a quote that does not end.
absl::StatusOr<std::vector<ShellWord>> ReadArgumentWords(
    const std::string& label, absl::string_view text);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_SHELL_SCRIPT_H_
