// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "results/compare/idle_causes.h"
#include "results/compare/transfer_times_json.h"
#include "results/report/sections.h"

namespace weir::results {
namespace {

Json ArrayOf(const IdleSeconds& seconds) {
  Json array = Json::array();
  for (const double value : seconds) array.push_back(value);
  return array;
}

Json RankJson(size_t rank, const RankIdle& idle) {
  return {{"rank", rank},
          {"busy", idle.busy_seconds},
          {"startup", ArrayOf(idle.startup)},
          {"between", ArrayOf(idle.between)},
          {"drain", idle.drain_seconds}};
}

}  // namespace

Json IdleSection(std::span<const Result> results,
                 std::span<const ShownPipeline> pipelines) {
  Json causes = Json::array();
  for (int cause = 0; cause < kNumIdleCauses; ++cause) {
    causes.push_back(std::string(Name(static_cast<IdleCause>(cause))));
  }
  Json runs = Json::array();
  for (size_t run = 0; run < results.size(); ++run) {
    Json entry = {{"ranks", Json::array()}};
    for (const ShownPipeline& pipeline : pipelines) {
      if (pipeline.run != run || !pipeline.events.has_value()) continue;
      const std::vector<RankIdle> idle = FindIdleCauses(*pipeline.events);
      entry["makespan_seconds"] = pipeline.events->makespan_seconds;
      for (size_t rank = 0; rank < idle.size(); ++rank) {
        entry["ranks"].push_back(RankJson(rank, idle[rank]));
      }
      entry["transfers"] = TransferTimesJson(TimesOf(*pipeline.events, idle));
      break;
    }
    runs.push_back(entry);
  }
  return {{"type", "idle"}, {"causes", causes}, {"runs", runs}};
}

}  // namespace weir::results
