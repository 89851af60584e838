// SPDX-License-Identifier: Apache-2.0
#include "cli/chunks.h"

#include <algorithm>
#include <cstdint>

namespace weir {

int LegalChunks(const ScheduleKind& kind, ScheduleSpec spec) {
  const int wanted = spec.num_chunks;
  for (int chunks : {wanted, 1, 2}) {
    spec.num_chunks = chunks;
    if (kind.check(spec).ok()) return chunks;
  }
  return wanted;
}

absl::StatusOr<ResolvedScenario> WithLegalChunks(
    const ScheduleKind& kind, absl::string_view label,
    const ResolvedScenario& resolved) {
  ScheduleSpec spec;
  spec.num_ranks = resolved.placement.pipeline;
  spec.num_microbatches = resolved.num_microbatches;
  spec.num_chunks =
      static_cast<int>(std::max(1u, resolved.scenario.parallelism().chunks()));
  const int chunks = LegalChunks(kind, spec);
  if (chunks == spec.num_chunks) return resolved;
  Scenario scenario = resolved.scenario;
  scenario.mutable_parallelism()->set_chunks(static_cast<uint32_t>(chunks));
  return ResolveScenario(label, scenario);
}

}  // namespace weir
