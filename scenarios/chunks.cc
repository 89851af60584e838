// SPDX-License-Identifier: Apache-2.0
#include "scenarios/chunks.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/status_macros.h"
#include "models/layout.h"
#include "schedules/options.h"
#include "schedules/source.h"

namespace weir::scenarios {

int LegalChunks(const schedules::ScheduleKind& kind,
                schedules::ScheduleSpec spec) {
  // If something else is wrong, the chunks should not add to it.
  int best = spec.num_chunks;
  std::ptrdiff_t fewest = std::numeric_limits<std::ptrdiff_t>::max();
  for (int chunks : {spec.num_chunks, 1, 2}) {
    spec.num_chunks = chunks;
    const absl::Status status = kind.check(spec);
    if (status.ok()) return chunks;
    const absl::string_view problems = status.message();
    const auto lines = std::count(problems.begin(), problems.end(), '\n');
    if (lines >= fewest) continue;
    fewest = lines;
    best = chunks;
  }
  return best;
}

void ScaleCosts(double factor, GivenCosts* costs) {
  if (costs->stages_size() != 1) return;  // given stage by stage
  GivenCosts::Stage* stage = costs->mutable_stages(0);
  stage->set_forward_seconds(factor * stage->forward_seconds());
  if (stage->has_backward_seconds()) {
    stage->set_backward_seconds(factor * stage->backward_seconds());
  } else {
    stage->set_backward_input_seconds(factor * stage->backward_input_seconds());
    stage->set_backward_weight_seconds(factor *
                                       stage->backward_weight_seconds());
  }
  if (stage->has_overlapped_seconds()) {
    stage->set_overlapped_seconds(factor * stage->overlapped_seconds());
  }
  if (stage->has_activation_bytes()) {
    stage->set_activation_bytes(factor * stage->activation_bytes());
  }
  if (stage->has_weight_gradient_bytes()) {
    stage->set_weight_gradient_bytes(factor * stage->weight_gradient_bytes());
  }
  // The bytes that a stage sends do not depend on its size: the codec stays.
  stage->set_offload_seconds(factor * stage->offload_seconds());
  stage->set_prediction_seconds(factor * stage->prediction_seconds());
}

void SetLegalChunks(const schedules::ScheduleKind& kind, Scenario* scenario) {
  const auto or_one = [](uint32_t n) { return uint64_t{std::max(n, 1u)}; };
  const auto to_int = [](uint64_t n) {
    return static_cast<int>(
        std::min<uint64_t>(n, std::numeric_limits<int>::max()));
  };
  const Parallelism& parallelism = scenario->parallelism();
  const Batch& batch = scenario->batch();
  schedules::ScheduleSpec spec;
  spec.num_ranks = to_int(or_one(parallelism.pipeline()));
  spec.num_chunks = to_int(or_one(parallelism.chunks()));
  // Nothing is checked yet: the product may need 64 bits.
  spec.num_microbatches = to_int(
      scenario->has_costs()
          ? or_one(scenario->num_microbatches())
          : or_one(batch.global_batch_size()) /
                (or_one(batch.microbatch_size()) * or_one(parallelism.data())));
  const absl::StatusOr<schedules::ScheduleSpec> with_options =
      schedules::WithOptionsOf(scenario->schedule(), kind, spec);
  if (!with_options.ok()) return;  // reported where it is checked
  const int chunks = LegalChunks(kind, *with_options);
  if (chunks == spec.num_chunks) return;
  scenario->mutable_parallelism()->set_chunks(static_cast<uint32_t>(chunks));
  if (scenario->has_costs()) {
    ScaleCosts(static_cast<double>(spec.num_chunks) / chunks,
               scenario->mutable_costs());
  }
}

namespace {

// Sets the chunks of Megatron-LM's layout of layers, if it is valid; it is
// checked elsewhere.
void FillFromLayout(Parallelism* parallelism) {
  if (parallelism->layout().empty()) return;
  const uint32_t pipeline = std::max(parallelism->pipeline(), 1u);
  const auto layout = models::ParseLayout("", parallelism->layout());
  if (!layout.ok() || layout->size() % pipeline != 0) return;
  parallelism->set_chunks(static_cast<uint32_t>(layout->size() / pipeline));
}

absl::Status FillFromFile(Scenario* scenario) {
  ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                   schedules::LoadScheduleFile(scenario->schedule()));
  ASSIGN_OR_RETURN(const int chunks, schedules::ChunksOf(schedule));
  scenario->mutable_parallelism()->set_chunks(static_cast<uint32_t>(chunks));
  if (scenario->has_costs() && chunks > 1) {
    ScaleCosts(1.0 / chunks, scenario->mutable_costs());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillChunks(Scenario* scenario) {
  if (scenario->parallelism().chunks() == 0) {
    FillFromLayout(scenario->mutable_parallelism());
  }
  if (scenario->parallelism().chunks() != 0) return absl::OkStatus();
  if (schedules::IsScheduleFile(scenario->schedule())) {
    return FillFromFile(scenario);
  }
  const auto kind = schedules::FindScheduleKind(scenario->schedule());
  if (kind.ok()) SetLegalChunks(**kind, scenario);
  return absl::OkStatus();
}

}  // namespace weir::scenarios
