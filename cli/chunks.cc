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

namespace {

// The same work of a rank, cut into other chunks.
void ScaleCosts(double factor, TextbookCosts* costs) {
  if (costs->stages_size() != 1) return;  // given stage by stage
  TextbookCosts::Stage* stage = costs->mutable_stages(0);
  stage->set_forward_seconds(factor * stage->forward_seconds());
  if (stage->has_backward_seconds()) {
    stage->set_backward_seconds(factor * stage->backward_seconds());
  } else {
    stage->set_backward_input_seconds(factor * stage->backward_input_seconds());
    stage->set_backward_weight_seconds(factor *
                                       stage->backward_weight_seconds());
  }
}

}  // namespace

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
  if (resolved.textbook) {
    ScaleCosts(static_cast<double>(spec.num_chunks) / chunks,
               scenario.mutable_textbook());
  }
  return ResolveScenario(label, scenario);
}

}  // namespace weir
