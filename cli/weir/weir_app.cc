// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/weir_app.h"

#include "cli/options/add_option.h"

namespace weir::cli {

std::unique_ptr<CLI::App> MakeWeirApp(CommandLine* line) {
  auto app = MakeBareApp(line);
  AddCommandSets(
      {{AddRunCommands, {"simulate", "compare"}},
       {AddStudyCommands, {"explain", "validate", "train-study"}},
       {AddShowCommand, {"show"}},
       {AddReportCommands, {"report", "live"}},
       {AddTraceCommand, {"trace"}},
       {AddDrawCommand, {"draw"}},
       {AddJobsCommand, {"jobs"}},
       {AddRecordedRunCommands, {"import", "stragglers", "slack", "jitter"}},
       {AddSweepCommands, {"sweep", "collect"}},
       {AddPlanCommand, {"plan"}},
       {AddGoodputCommand, {"goodput"}},
       {AddEnergyCommand, {"energy"}},
       {AddScheduleCommands, {"schedule"}},
       {AddSynthesizeCommand, {"schedule"}},
       {AddInputCommands, {"model", "cluster", "scenario"}},
       {AddProfileCommands, {"profile"}},
       {AddInitCommand, {"init"}},
       {AddMachineCommands, {"schema", "serve"}},
       {AddCheckCommands, {"doctor", "self-test"}}},
      app.get(), line);
  return app;
}

}  // namespace weir::cli
