// SPDX-License-Identifier: Apache-2.0
#include "calibrate/program/calibrate_main.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/interrupt.h"
#include "calibrate/program/commands.h"
#include "calibrate/program/parse.h"

namespace weir {
namespace {

int Dispatch(const CommandLine& line, const Factories& factories) {
  using Command = CommandLine::Command;
  switch (line.command) {
    case Command::kText:
      return PrintResult(line.text);
    case Command::kRun:
      return RunCalibration(line.run, factories);
    case Command::kCheck:
      return CheckKernels(line.run, factories);
    case Command::kNetwork:
      return RunNetworkCommand(line.network, factories.make_transport);
    case Command::kDoctor:
      return RunDoctor(line.doctor, factories);
  }
  return kExitInternal;
}

}  // namespace

ExitCode PrintError(const absl::Status& status) {
  std::string text(status.message());
  if (text.empty()) text = status.ToString();
  for (absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    std::fputs(absl::StrCat("error: ", line, "\n").c_str(), stderr);
  }
  return ExitCodeOf(status);
}

ExitCode PrintResult(absl::string_view text) {
  const bool ended = text.empty() || text.back() == '\n';
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      (ended || std::fputc('\n', stdout) != EOF) && std::fflush(stdout) == 0) {
    return kExitOk;
  }
  return PrintError(absl::InvalidArgumentError(absl::StrCat(
      "standard output: cannot be written: ", std::strerror(errno))));
}

int CalibrateMain(int argc, const char* const* argv,
                  const Factories& factories) {
  ExitOnInterrupt();
  try {
    const absl::StatusOr<CommandLine> line =
        ParseCalibrateArguments(argc, argv);
    return line.ok() ? Dispatch(*line, factories) : PrintError(line.status());
  } catch (const std::bad_alloc&) {
    return PrintError(
        absl::UnavailableError("this machine has not enough memory for it"));
  } catch (const std::exception& error) {
    return PrintError(absl::InternalError(error.what()));
  }
}

}  // namespace weir
