// SPDX-License-Identifier: Apache-2.0
// Stages of pipeline ranks from Megatron-LM's arguments.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/layout.h"
#include "plan/frameworks/megatron_combinations.h"
#include "plan/frameworks/megatron_settings.h"
#include "plan/search/interleaving.h"

namespace weir::plan {
namespace {

// Arguments.
constexpr char kPipeline[] = "pipeline-model-parallel-size";
constexpr char kFirst[] = "decoder-first-pipeline-num-layers";
constexpr char kLast[] = "decoder-last-pipeline-num-layers";
constexpr char kStages[] = "pipeline-model-parallel-layout";
constexpr char kChunks[] = "num-virtual-stages-per-pipeline-rank";
constexpr char kLayersEach[] = "num-layers-per-virtual-pipeline-stage";
constexpr char kLayers[] = "num-layers";
constexpr char kNoOverlap[] = "no-overlap-p2p-communication";

}  // namespace

void FinishStages(MegatronSettings* settings, Problems* problems) {
  Parallelism& parallelism = settings->parallelism();
  const uint32_t ranks = std::max(parallelism.pipeline(), 1u);
  const bool has_layout = !parallelism.layout().empty();
  uint32_t chunks = parallelism.chunks();
  std::vector<std::string> given;
  if (has_layout) given.emplace_back(kStages);
  if (chunks > 0) given.emplace_back(kChunks);
  if (settings->layers_per_stage.has_value()) given.emplace_back(kLayersEach);
  if (given.size() > 1) {
    ReportCombination(
        *settings, given,
        absl::StrCat("cannot be combined with ", settings->NameOf(given[1])),
        problems);
    return;
  }
  for (const char* uneven : {kFirst, kLast}) {
    if (!settings->layers_per_stage.has_value() ||
        !settings->given.contains(uneven)) {
      continue;
    }
    ReportCombination(
        *settings, {uneven},
        absl::StrCat("cannot be combined with ", settings->NameOf(kLayersEach),
                     ", expected ", settings->NameOf(kChunks)),
        problems);
    return;
  }
  if (settings->layers_per_stage.has_value()) {
    const uint32_t layers =
        settings->model().num_layers() +
        parallelism.account_for_embedding_in_pipeline_split() +
        parallelism.account_for_loss_in_pipeline_split();
    const uint32_t each = *settings->layers_per_stage;
    if (layers % ranks != 0 || layers / ranks % each != 0) {
      ReportCombination(
          *settings, {kLayersEach, kLayers, kPipeline},
          absl::StrCat("is ", each, ", expected a divisor of the layers of ",
                       "a pipeline rank: ", settings->NameOf(kLayers), " is ",
                       layers, ", ", settings->NameOf(kPipeline), " is ",
                       ranks),
          problems);
      return;
    }
    chunks = layers / ranks / each;
    parallelism.set_chunks(chunks);
  }
  const auto layout = models::ParseLayout("", parallelism.layout());
  if (has_layout && layout.ok()) {
    if (layout->size() % ranks != 0) {
      ReportCombination(
          *settings, {kStages, kPipeline},
          absl::StrCat("has ", layout->size(),
                       " stages, expected a multiple of ",
                       settings->NameOf(kPipeline), ", which is ", ranks),
          problems);
      return;
    }
    chunks = static_cast<uint32_t>(layout->size()) / ranks;
  }
  const bool interleaved = chunks > 1;
  if (!settings->overlap_p2p) {
    settings->communication().set_transfers(BLOCKING);
  }
  // arguments.py checks more than Megatron-Core, which NeMo uses directly.
  const int least =
      settings->runtime == "nemo"
          ? 2
          : MegatronMinRanksToInterleave(settings->communication());
  if (interleaved && ranks < static_cast<uint32_t>(least)) {
    ReportCombination(
        *settings, {kPipeline, kChunks, kLayersEach, kStages},
        absl::StrCat("is ", ranks, ", expected at least ", least, " with ",
                     chunks, " virtual stages per rank",
                     least > 2
                         ? absl::StrCat(" and ", settings->NameOf(kNoOverlap))
                         : ""),
        problems);
  }
  settings->scenario.set_schedule(interleaved ? "interleaved-1f1b" : "1f1b");
}

}  // namespace weir::plan
