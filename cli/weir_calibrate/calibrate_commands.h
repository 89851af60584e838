// SPDX-License-Identifier: Apache-2.0
// The commands of weir-calibrate. Each returns the exit code.
#ifndef WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_COMMANDS_H_
#define WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_COMMANDS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/exit_code.h"
#include "cli/weir_calibrate/calibrate_flags.h"
#include "cli/weir_calibrate/calibrate_main.h"

namespace weir::cli {

int RunCalibration(const RunFlags& flags, const Factories& factories);
int CheckKernels(const RunFlags& flags, const Factories& factories);
int RunReplayCommand(const ReplayFlags& flags, const Factories& factories);
int RunReplayPlan(const ReplayFlags& flags, const Factories& factories);
int RunJudge(const JudgeFlags& flags);
int RunDoctor(const DoctorFlags& flags, const Factories& factories);

// Same as weir's (cli/options/messages.h), without color and in the form of
// --message-format.
ExitCode PrintError(const absl::Status& status);
void PrintErrorMessage(absl::string_view message);
void PrintWarning(absl::string_view message);
void PrintNote(absl::string_view message);
ExitCode PrintAnswer(absl::string_view text);

// Returns the bench, or Unavailable (exit code 3) with the reason.
absl::StatusOr<std::unique_ptr<calibrate::Bench>> OpenBench(
    const RunFlags& flags, const Factories& factories);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_COMMANDS_H_
