// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/run_weir.h"

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "base/interrupt.h"
#include "base/temporary_file.h"
#include "base/text_table.h"
#include "base/textproto.h"
#include "cli/options/messages.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {
namespace {

int ParseAndRun(int argc, const char* const* argv, MakeApp* make) {
  CommandLine line;
  const absl::StatusOr<std::string> text =
      ParseWeirArguments(argc, argv, make, &line);
  if (!text.ok()) return PrintError(text.status(), line.flags.output);
  SetTextLayout(LayoutOf(line.flags.output));
  if (text->empty()) return line.command(line.flags);
  const absl::Status printed = PrintResult(*text);
  return printed.ok() ? kExitOk : PrintError(printed, line.flags.output);
}

}  // namespace

int RunWeir(int argc, const char* const* argv, MakeApp* make) {
  ExitOnInterrupt();
  IgnoreFileSizeSignal();
  return RunWeirCommand(argc, argv, make);
}

int RunWeirCommand(int argc, const char* const* argv, MakeApp* make) {
  try {
    SilenceProtobuf();
    return ParseAndRun(argc, argv, make);
  } catch (const std::bad_alloc&) {
    return PrintError(absl::UnavailableError("out of memory"), OutputFlags());
  } catch (const std::exception& error) {
    return PrintError(absl::InternalError(error.what()), OutputFlags());
  }
}

}  // namespace weir::cli
