// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "calibrate/measure/measurement_plan.h"

namespace weir::calibrate {

void SelectWorkloads(absl::string_view text, MeasuringPlan* plan) {
  absl::flat_hash_set<std::string> needed;
  for (const PlannedPass& pass : plan->passes) {
    if (!absl::StrContains(pass.key, text) &&
        !absl::StrContains(pass.stream_key, text)) {
      continue;
    }
    needed.insert(pass.op_keys.begin(), pass.op_keys.end());
  }
  for (const PlannedLoad& load : plan->loads) {
    if (!absl::StrContains(load.key, text)) continue;
    const PlannedPass& pass = plan->passes[load.pass];
    needed.insert(pass.key);
    needed.insert(pass.op_keys.begin(), pass.op_keys.end());
  }
  const auto left_out = [&](const auto& planned) {
    return !absl::StrContains(planned.key, text) &&
           !needed.contains(planned.key);
  };
  std::erase_if(plan->workloads, left_out);
  std::erase_if(plan->memory, left_out);
  const bool has_gemms =
      std::any_of(plan->workloads.begin(), plan->workloads.end(),
                  [](const Workload& workload) {
                    return absl::StartsWith(workload.key, "gemm ");
                  });
  if (!has_gemms) plan->sustained.key.clear();
}

}  // namespace weir::calibrate
