// SPDX-License-Identifier: Apache-2.0
// The sections of a report. Each function returns one section of the header
// (data_block.h) and adds its columns; web/src/model.ts describes the fields.
// Seconds and bytes are numbers, texts are for display and unescaped.
#ifndef WEIR_RESULTS_REPORT_SECTIONS_H_
#define WEIR_RESULTS_REPORT_SECTIONS_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "results/pipeline_events.h"
#include "results/report/data_block.h"
#include "results/report/pipelines.h"
#include "results/result.pb.h"

namespace weir::results {

using Json = nlohmann::ordered_json;

// A pipeline whose events the report shows.
struct ShownPipeline {
  size_t run = 0;  // index into the results
  PipelineGroup group;
  Result result;  // of PipelineOf
  // Absent if the timeline does not begin at 0, see PipelineEventsOf.
  std::optional<PipelineEvents> events;
};

// Returns the name of each result, made distinct by numbers: "1f1b", "gpipe",
// "gpipe (2)".
std::vector<std::string> RunNames(std::span<const Result> results);

// Returns the key figures, as tables and --format json show them.
Json FiguresSection(std::span<const Result> results);

// Returns where the time of a batch goes: the mean over all GPUs, and the parts
// of the busiest GPU. Both add up to batch_seconds.
Json BreakdownSection(std::span<const Result> results);

// Returns the timelines; every row is a track of a rank, and idle time is
// divided by cause. Requires: the timelines are valid. Returns the errors of
// LayOutTrace.
absl::StatusOr<Json> TimelineSection(std::span<const ShownPipeline> pipelines,
                                     DataBlock* data);

// Returns the idle seconds of every rank by cause (compare/idle_causes.h).
// `pipelines`: the first pipeline of each result that has one.
Json IdleSection(std::span<const Result> results,
                 std::span<const ShownPipeline> pipelines);

// Returns the transfers from each rank to another: their number, bytes, the
// time in which at least one is on the wire, and its fraction of the run.
// `pipelines`: as for IdleSection.
Json LinksSection(std::span<const Result> results,
                  std::span<const ShownPipeline> pipelines);

// Returns how much delay passes and transfers of each rank absorb.
Json SlackSection(std::span<const Result> results);

// Returns peaks of memory by class, and memory over time.
Json MemorySection(std::span<const Result> results,
                   std::span<const ShownPipeline> pipelines, DataBlock* data);

// Returns values of each pipeline rank, the maximum over its GPUs.
Json RanksSection(std::span<const Result> results);

// Returns the resolved scenarios, and who computed the results.
Json ConfigurationSection(std::span<const Result> results);

}  // namespace weir::results

#endif  // WEIR_RESULTS_REPORT_SECTIONS_H_
