// SPDX-License-Identifier: Apache-2.0
// Part of the reader of torchtitan's jobs: schedule and stages.
#ifndef WEIR_PLAN_FRAMEWORKS_TORCHTITAN_SCHEDULE_H_
#define WEIR_PLAN_FRAMEWORKS_TORCHTITAN_SCHEDULE_H_

#include <cstdint>
#include <string>

#include "base/problems.h"
#include "plan/frameworks/setting_values.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

// Sets the schedule, its chunks and the blocks of its stages on `pipeline`
// ranks. The path of a CSV is relative to the folder of `label`. Reports
// problems of the settings to `values`, others to `problems`.
void TakeTorchtitanSchedule(const std::string& label, int64_t pipeline,
                            SettingValues* values, Problems* problems,
                            Scenario* scenario);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_TORCHTITAN_SCHEDULE_H_
