// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <string>

#include "base/json_text.h"
#include "results/compare/execution_comparison.h"
#include "results/compare/transfer_times_json.h"

namespace weir::results {
namespace {

using Json = nlohmann::ordered_json;

Json Of(const ComparedSeconds& seconds) {
  return {{"predicted", seconds.predicted},
          {"measured", seconds.measured},
          {"error", seconds.error()}};
}

Json Of(const ErrorStatistics& statistics, const std::string& worst_action) {
  return {{"count", statistics.num_rows},
          {"mean_absolute_error", statistics.mean_absolute},
          {"bias", statistics.bias},
          {"median_absolute_error", statistics.median_absolute},
          {"percentile_90", statistics.percentile_90},
          {"worst", statistics.worst},
          {"worst_action", worst_action}};
}

Json Of(const ActionErrors& errors) {
  Json ends = Of(errors.ends, "");
  ends.erase("worst_action");
  return {{"op", errors.op},
          {"count", errors.num_actions},
          {"duration", Of(errors.durations, errors.worst_duration)},
          {"start", Of(errors.starts, errors.worst_start)},
          {"end", std::move(ends)}};
}

Json Of(const IdleSeconds& seconds) {
  Json json = Json::object();
  for (int i = 0; i < kNumIdleCauses; ++i) {
    json[std::string(Name(static_cast<IdleCause>(i))) + "_seconds"] =
        seconds[i];
  }
  return json;
}

Json Of(const RankIdle& idle) {
  return {{"busy_seconds", idle.busy_seconds},
          {"idle_seconds", idle.idle_seconds()},
          {"startup", Of(idle.startup)},
          {"between", Of(idle.between)},
          {"drain_seconds", idle.drain_seconds}};
}

Json Of(const MemoryPeak& peak) {
  return {{"bytes", peak.bytes},
          {"left_out_bytes", peak.left_out_bytes},
          {"at_seconds", peak.at_seconds},
          {"during", peak.during}};
}

Json Of(const RankMemory& memory) {
  Json json = {{"rank", memory.rank},
               {"predicted", Of(memory.predicted)},
               {"measured", Of(memory.measured)},
               {"error", memory.error()}};
  if (memory.allocator_bytes > 0) {
    json["allocator_bytes"] = memory.allocator_bytes;
    json["allocator_error"] = memory.allocator_error();
  }
  if (memory.taken_bytes > 0) {
    json["taken_bytes"] = memory.taken_bytes;
    json["early_and_late"] = memory.early_and_late();
  }
  json["classes"] = Json::array();
  for (const ComparedClass& one : memory.classes) {
    json["classes"].push_back({{"name", one.name},
                               {"predicted_bytes", one.predicted_bytes},
                               {"measured_bytes", one.measured_bytes}});
  }
  return json;
}

Json Of(const ComparedAction& action) {
  Json json = {{"rank", action.rank},
               {"action", ActionText(action.measured)},
               {"predicted_start_seconds", action.predicted.start_seconds},
               {"predicted_seconds", action.predicted.seconds()},
               {"measured_start_seconds", action.measured.start_seconds},
               {"measured_seconds", action.measured.seconds()}};
  if (action.has_duration()) json["duration_error"] = action.duration_error();
  return json;
}

template <typename T>
Json All(const std::vector<T>& values) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(Of(value));
  return json;
}

Json TrainingOf(const Replay& replay) {
  Json json = {{"device", replay.device()},
               {"serial", replay.serial()},
               {"num_steps", replay.num_steps()},
               {"losses", Json::array()}};
  for (const double loss : replay.losses()) json["losses"].push_back(loss);
  if (replay.formula().empty()) return json;
  json["formula"] = replay.formula();
  json["weights_difference"] = replay.weights_difference();
  json["change_difference"] = replay.change_difference();
  json["losses_difference"] = replay.losses_difference();
  return json;
}

}  // namespace

std::string ExecutionJson(const ExecutionComparison& comparison) {
  Json json = {{"predicted", comparison.predicted_label},
               {"measured", comparison.measured_label},
               {"schedule", comparison.predicted.schedule()}};
  json["makespan_seconds"] = Of(comparison.makespan);
  if (comparison.batch.measured > 0) {
    json["batch_seconds"] = Of(comparison.batch);
  }
  json["span_seconds"] = Of(comparison.span);
  json["idle_ratio"] = Of(comparison.idle_ratio);
  json["errors"] = All(comparison.errors);
  json["idle"] = {{"predicted", All(comparison.predicted_idle)},
                  {"measured", All(comparison.measured_idle)}};
  json["transfers"] = {
      {"predicted", TransferTimesJson(comparison.predicted_transfers)},
      {"measured", TransferTimesJson(comparison.measured_transfers)}};
  json["clocks"] = {{"inputs", comparison.clocks.num_inputs},
                    {"early", comparison.clocks.num_early},
                    {"largest_seconds", comparison.clocks.largest_seconds}};
  json["memory"] = All(comparison.memory);
  if (comparison.measured.has_replay()) {
    json["training"] = TrainingOf(comparison.measured.replay());
  }
  json["notes"] = comparison.notes;
  json["actions"] = All(comparison.actions);
  return DumpJson(json);
}

}  // namespace weir::results
