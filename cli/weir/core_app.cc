// SPDX-License-Identifier: Apache-2.0
#include "cli/options/add_option.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {

std::unique_ptr<CLI::App> MakeCoreApp(CommandLine* line) {
  auto app = MakeBareApp(line);
  AddRunCommands(app.get(), line);
  AddShowCommand(app.get(), line);
  AddTraceCommand(app.get(), line);
  AddScheduleCommands(app.get(), line);
  AddInputCommands(app.get(), line);
  AddCheckCommands(app.get(), line);
  return app;
}

}  // namespace weir::cli
