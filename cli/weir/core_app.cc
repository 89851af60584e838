// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "cli/options/add_option.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {

std::unique_ptr<CLI::App> MakeCoreApp(CommandLine* line) {
  auto app = MakeBareApp(line);
  AddCommandSets({{AddRunCommands, {"simulate", "compare"}},
                  {AddShowCommand, {"show"}},
                  {AddTraceCommand, {"trace"}},
                  {AddScheduleCommands, {"schedule"}},
                  {AddInputCommands, {"model", "cluster", "scenario"}},
                  {AddCheckCommands, {"doctor", "self-test"}}},
                 app.get(), line);
  app->footer(absl::StrCat(app->get_footer(),
                           "\n\nThis is weir-core. The commands that plan, "
                           "sweep, import, draw and report are in\nthe program "
                           "weir (ninja weir)."));
  return app;
}

}  // namespace weir::cli
