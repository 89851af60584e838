// SPDX-License-Identifier: Apache-2.0
// The commands of weir-calibrate with their options and help.
#ifndef WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_APP_H_
#define WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_APP_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/weir_calibrate/calibrate_flags.h"
#include "cli/weir_calibrate/calibrate_main.h"

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

struct CalibrateLine {
  std::function<int(const Factories&)> command;  // returns the exit code
  RunFlags run;                                  // also of `check`
  ReplayFlags replay;
  calibrate::NetworkFlags network;
  JudgeFlags judge;
  DoctorFlags doctor;
  bool json_messages = false;
};

// Returns the program. Parsing sets `line`, which must outlive it.
std::unique_ptr<CLI::App> MakeCalibrateApp(CalibrateLine* line);

// Sets `line` as far as the arguments are valid. Returns the same as
// ParseArguments, also for errors.
absl::StatusOr<std::string> ParseCalibrateArguments(int argc,
                                                    const char* const* argv,
                                                    CalibrateLine* line);

// Adds the options of a run of weir and those of a replay.
void AddReplay(CLI::App* app, ReplayFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_CALIBRATE_CALIBRATE_APP_H_
