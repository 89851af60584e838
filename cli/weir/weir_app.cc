// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/weir_app.h"

#include "cli/options/add_option.h"

namespace weir::cli {

std::unique_ptr<CLI::App> MakeWeirApp(CommandLine* line) {
  auto app = MakeBareApp(line);
  AddRunCommands(app.get(), line);
  AddStudyCommands(app.get(), line);
  AddShowCommand(app.get(), line);
  AddReportCommands(app.get(), line);
  AddTraceCommand(app.get(), line);
  AddDrawCommand(app.get(), line);
  AddJobsCommand(app.get(), line);
  AddRecordedRunCommands(app.get(), line);
  AddSweepCommands(app.get(), line);
  AddPlanCommand(app.get(), line);
  AddGoodputCommand(app.get(), line);
  AddEnergyCommand(app.get(), line);
  AddScheduleCommands(app.get(), line);
  AddSynthesizeCommand(app.get(), line);
  AddInputCommands(app.get(), line);
  AddProfileCommands(app.get(), line);
  AddInitCommand(app.get(), line);
  AddMachineCommands(app.get(), line);
  AddCheckCommands(app.get(), line);
  return app;
}

}  // namespace weir::cli
