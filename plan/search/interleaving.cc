// SPDX-License-Identifier: Apache-2.0
#include "plan/search/interleaving.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "schedules/registry.h"

namespace weir::plan {

int MegatronMinRanksToInterleave(const Communication& communication) {
  return communication.transfers() == BLOCKING ? 3 : 2;
}

int MinRanksToInterleave(const Runtime& runtime,
                         const Communication& communication) {
  // Version 2.5 has no overlapped transfers and requires more than 2 ranks.
  if (runtime.name() == "megatron-lm-2021") return 3;
  return absl::StartsWith(runtime.name(), "megatron-lm")
             ? MegatronMinRanksToInterleave(communication)
             : 1;
}

bool ShardsFully(const scenarios::ResolvedScenario& scenario,
                 const Shape& shape) {
  switch (scenario.runtime.full_sharding()) {
    case FULL_SHARDING_NONE:
      return false;
    case FULL_SHARDING_SINGLE_RANK:
      return shape.pipeline == 1 &&
             scenario.scenario.training().precision() != MIXED_FP16 &&
             !scenario.model.transformer().tied_embeddings();
    default:
      return true;
  }
}

bool ListsSchedule(const Runtime& runtime, absl::string_view schedule) {
  const auto kind = schedules::FindScheduleKind(std::string(schedule));
  return kind.ok() &&
         std::any_of(runtime.schedules().begin(), runtime.schedules().end(),
                     [&](const std::string& name) {
                       const auto other = schedules::FindScheduleKind(name);
                       return other.ok() && *other == *kind;
                     });
}

}  // namespace weir::plan
