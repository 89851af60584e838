// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/calibrate_main.h"

#include <exception>
#include <new>

#include "base/interrupt.h"
#include "base/temporary_file.h"
#include "base/textproto.h"
#include "cli/options/messages.h"
#include "cli/weir_calibrate/calibrate_commands.h"
#include "cli/weir_calibrate/calibrate_parse.h"

namespace weir::cli {
namespace {

int Dispatch(const CalibrateLine& line, const Factories& factories) {
  using Command = CalibrateLine::Command;
  switch (line.command) {
    case Command::kText:
      return PrintAnswer(line.text);
    case Command::kRun:
      return RunCalibration(line.run, factories);
    case Command::kCheck:
      return CheckKernels(line.run, factories);
    case Command::kReplay:
      return RunReplayCommand(line.replay, factories);
    case Command::kNetwork:
      return calibrate::RunNetworkCommand(line.network,
                                          factories.make_transport);
    case Command::kDoctor:
      return RunDoctor(line.doctor, factories);
  }
  return kExitInternal;
}

OutputFlags Plain() {
  OutputFlags plain;
  plain.color = OutputFlags::Color::kNever;
  return plain;
}

}  // namespace

ExitCode PrintError(const absl::Status& status) {
  return PrintError(status, Plain());
}

void PrintErrorMessage(absl::string_view message) {
  PrintErrorMessage(message, Plain());
}

ExitCode PrintAnswer(absl::string_view text) {
  const absl::Status printed = PrintResult(text);
  return printed.ok() ? kExitOk : PrintError(printed);
}

int CalibrateMain(int argc, const char* const* argv,
                  const Factories& factories) {
  ExitOnInterrupt();
  IgnoreFileSizeSignal();
  SilenceProtobuf();
  try {
    const absl::StatusOr<CalibrateLine> line =
        ParseCalibrateArguments(argc, argv);
    return line.ok() ? Dispatch(*line, factories) : PrintError(line.status());
  } catch (const std::bad_alloc&) {
    return PrintError(absl::UnavailableError("out of memory"));
  } catch (const std::exception& error) {
    return PrintError(absl::InternalError(error.what()));
  }
}

}  // namespace weir::cli
