// SPDX-License-Identifier: Apache-2.0
// "weir-calibrate replay --plan".
#include <string>

#include "base/problems.h"
#include "base/status_macros.h"
#include "cli/options/messages.h"
#include "cli/weir_calibrate/calibrate_commands.h"
#include "cli/weir_calibrate/replay_gpu.h"
#include "cli/weir_calibrate/replay_rows.h"

namespace weir::cli {
namespace {

absl::Status CheckPlanFlags(const ReplayFlags& flags) {
  Problems problems("weir-calibrate replay --plan");
  if (flags.cpu) {
    problems.Add("--cpu", "is given, but the plan is for a GPU");
  }
  if ((flags.memory_bytes > 0) != (flags.num_multiprocessors > 0)) {
    problems.Add(
        flags.memory_bytes > 0 ? "--multiprocessors" : "--memory",
        "is missing: a GPU is described by both, or by neither for this "
        "machine's");
  }
  return problems.ToStatus();
}

std::string View(const ReplayFlags& flags, const ReplayRows& rows) {
  switch (flags.weir.output.format) {
    case OutputFlags::Format::kJson:
      return ReplayRowsJson(flags.weir.command, rows);
    case OutputFlags::Format::kCsv:
      return ReplayRowsCsv(rows);
    case OutputFlags::Format::kTable:
      break;
  }
  return ReplayRowsTable(rows);
}

absl::StatusOr<int> Plan(const ReplayFlags& flags, const Factories& factories) {
  RETURN_IF_ERROR(CheckPlanFlags(flags));
  ASSIGN_OR_RETURN(const Provenance gpu, GpuOf(flags, factories));
  ReplayRowsRequest request;
  request.gpu = {static_cast<double>(gpu.memory_bytes()),
                 static_cast<int>(gpu.num_multiprocessors())};
  request.num_partitions = flags.num_partitions;
  request.scenario = ScenarioOf(flags);
  request.scenario_options = flags.scenario_options;
  if (flags.weir.scenario.scenario.empty() &&
      !request.scenario.scenario.empty()) {
    request.scenario_options.insert(request.scenario_options.begin(),
                                    request.scenario.scenario);
  }
  ASSIGN_OR_RETURN(const bool needs_profile, NeedsProfile(request.scenario));
  if (needs_profile) {
    ASSIGN_OR_RETURN(*request.scenario.overrides.mutable_profile(),
                     PresetOf(gpu));
  }
  ASSIGN_OR_RETURN(const ReplayRows rows, PlanReplays(request));
  RETURN_IF_ERROR(PrintResult(View(flags, rows)));
  return rows.num_fitting() > 0 ? kExitOk : kExitNegative;
}

}  // namespace

int RunReplayPlan(const ReplayFlags& flags, const Factories& factories) {
  const absl::StatusOr<int> code = Plan(flags, factories);
  return code.ok() ? *code : PrintError(code.status(), flags.weir.output);
}

}  // namespace weir::cli
