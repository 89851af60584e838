// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/calibrate_main.h"

#include <exception>
#include <new>

#include "base/interrupt.h"
#include "base/temporary_file.h"
#include "base/textproto.h"
#include "cli/options/messages.h"
#include "cli/weir_calibrate/calibrate_app.h"
#include "cli/weir_calibrate/calibrate_commands.h"

namespace weir::cli {
namespace {

// The form of the messages of this process.
OutputFlags& MessageFlags() {
  static OutputFlags& flags = *new OutputFlags{};
  flags.color = OutputFlags::Color::kNever;
  return flags;
}

}  // namespace

ExitCode PrintError(const absl::Status& status) {
  return PrintError(status, MessageFlags());
}

void PrintErrorMessage(absl::string_view message) {
  PrintErrorMessage(message, MessageFlags());
}

void PrintWarning(absl::string_view message) {
  PrintWarning(message, MessageFlags());
}

void PrintNote(absl::string_view message) {
  PrintNote(message, MessageFlags());
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
    CalibrateLine line;
    const absl::StatusOr<std::string> text =
        ParseCalibrateArguments(argc, argv, &line);
    MessageFlags().json_messages = line.json_messages;
    if (!text.ok()) return PrintError(text.status());
    return text->empty() ? line.command(factories) : PrintAnswer(*text);
  } catch (const std::bad_alloc&) {
    return PrintError(absl::UnavailableError("out of memory"));
  } catch (const std::exception& error) {
    return PrintError(absl::InternalError(error.what()));
  }
}

}  // namespace weir::cli
