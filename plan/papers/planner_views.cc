// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/planner_views.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/csv.h"
#include "base/json_text.h"
#include "base/text_table.h"
#include "base/units.h"

namespace weir::plan {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) { return DumpJson(json, 2); }

Json StageJson(const PipeDreamStage& stage) {
  return {{"first_state", stage.first_state},
          {"end_state", stage.end_state},
          {"seconds", stage.compute_seconds},
          {"replicas", stage.replicas}};
}

std::string Message(const absl::Status& status) {
  return absl::StrReplaceAll(status.message(), {{"\n", "; "}});
}

// Returns layers and replicas of each stage: "0-7 x2 | 8-25".
std::string StagesText(const PlannedPipeline& plan) {
  return absl::StrJoin(
      plan.stages, " | ", [](std::string* out, const PlannedStage& stage) {
        absl::StrAppend(out, stage.first_layer, "-", stage.end_layer - 1);
        if (stage.devices.size() > 1) {
          absl::StrAppend(out, " x", stage.devices.size());
        }
        if (stage.recompute) absl::StrAppend(out, " recompute");
        if (stage.swap) absl::StrAppend(out, " swap");
      });
}

// Returns the time of a batch by the planner's own model, in the same unit for
// all planners.
double PlannedBatchSeconds(const PlannedPipeline& plan) {
  return plan.objective_seconds * plan.objectives_per_batch;
}

Json PlannerResultJson(const PlannerResult& answer) {
  Json json = {{"algorithm", answer.algorithm}};
  if (!answer.planned.ok()) {
    json["error"] = std::string(answer.planned.message());
    return json;
  }
  const PlannedPipeline& plan = answer.plan;
  json["schedule"] = plan.schedule;
  json["objective_seconds"] = plan.objective_seconds;
  json["planned_batch_seconds"] = PlannedBatchSeconds(plan);
  json["inference"] = plan.inference;
  json["num_microbatches"] = plan.num_microbatches;
  if (plan.microbatch_size > 0) json["microbatch_size"] = plan.microbatch_size;
  for (const PlannedStage& stage : plan.stages) {
    json["stages"].push_back({{"first_layer", stage.first_layer},
                              {"end_layer", stage.end_layer},
                              {"replicas", stage.devices.size()},
                              {"devices", stage.devices},
                              {"recompute", stage.recompute},
                              {"swap", stage.swap}});
  }
  json["notes"] = plan.notes;
  if (!answer.simulated.ok()) {
    json["not_simulated"] = std::string(answer.simulated.message());
    return json;
  }
  json["simulated"] = {{"batch_seconds", answer.batch_seconds},
                       {"samples_per_second", answer.samples_per_second},
                       {"peak_memory_bytes", answer.peak_memory_bytes},
                       {"fits_memory", answer.fits_memory},
                       {"lint_errors", answer.num_lint_errors}};
  return json;
}

}  // namespace

std::string PipeDreamTable(const AntichainDag& dag, const PipeDreamPlan& plan) {
  const std::vector<std::vector<int>> nodes = NodesOfStages(dag, plan);
  std::string text = absl::StrFormat(
      "pipeline       %.9g s per minibatch\none machine    %.9g s, %.2f times "
      "as long\ndata parallel  %.9g s\n%d states\n\nstage  states     replicas "
      " seconds     nodes\n",
      plan.pipeline_seconds, plan.single_stage_seconds,
      plan.pipeline_seconds > 0
          ? plan.single_stage_seconds / plan.pipeline_seconds
          : 1,
      plan.data_parallel_seconds, plan.num_states);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PipeDreamStage& stage = plan.stages[s];
    absl::StrAppendFormat(
        &text, "%5d  %-9s  %8d  %-10.6g  %s\n", s,
        absl::StrCat(stage.first_state, "-", stage.end_state - 1),
        stage.replicas, stage.compute_seconds,
        nodes[s].empty()
            ? "none"
            : absl::StrFormat("%d, %s to %s", nodes[s].size(),
                              dag.node_names[nodes[s].front()].substr(0, 40),
                              dag.node_names[nodes[s].back()].substr(0, 40)));
  }
  return text;
}

std::string PipeDreamJson(const AntichainDag& dag, const PipeDreamPlan& plan) {
  Json json = {{"pipeline_time_seconds", plan.pipeline_seconds},
               {"single_stage_time_seconds", plan.single_stage_seconds},
               {"data_parallel_time_seconds", plan.data_parallel_seconds},
               {"num_states", plan.num_states},
               {"stages", Json::array()},
               {"levels", Json::array()}};
  const std::vector<std::vector<int>> nodes = NodesOfStages(dag, plan);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    Json stage = StageJson(plan.stages[s]);
    stage["nodes"] = Json::array();
    for (int node : nodes[s]) stage["nodes"].push_back(dag.node_names[node]);
    json["stages"].push_back(stage);
  }
  for (const std::vector<PipeDreamStage>& level : plan.levels) {
    Json stages = Json::array();
    for (const PipeDreamStage& stage : level) {
      stages.push_back(StageJson(stage));
    }
    json["levels"].push_back(stages);
  }
  return Dump(json);
}

std::string PlannerResultsTable(const std::vector<PlannerResult>& answers) {
  TextTable table;
  table.header = {"algorithm", "planned", "step time",       "samples/s",
                  "peak",      "fits",    "schedule, stages"};
  table.left = {true, false, false, false, false, true, true};
  table.optional = {0, 2, 0, 1, 0, 0, 0};
  std::string notes;
  for (const PlannerResult& answer : answers) {
    if (!answer.planned.ok()) {
      table.rows.push_back(
          {answer.algorithm, "-", "-", "-", "-", "-",
           absl::StrCat("no plan: ", Message(answer.planned))});
      continue;
    }
    std::string stages = absl::StrCat(
        answer.plan.schedule, answer.plan.inference ? " (inference only)" : "",
        ", ", StagesText(answer.plan));
    std::vector<std::string> row = {
        answer.algorithm, FormatSeconds(PlannedBatchSeconds(answer.plan))};
    if (answer.simulated.ok()) {
      row.insert(row.end(), {FormatSeconds(answer.batch_seconds),
                             FormatCount(answer.samples_per_second),
                             FormatBytes(answer.peak_memory_bytes),
                             answer.num_lint_errors > 0
                                 ? "lint"
                                 : (answer.fits_memory ? "yes" : "no")});
    } else {
      row.insert(row.end(), 4, "-");
      absl::StrAppend(&notes, answer.algorithm,
                      ": not simulated: ", Message(answer.simulated), "\n");
    }
    row.push_back(std::move(stages));
    table.rows.push_back(std::move(row));
    for (const std::string& note : answer.plan.notes) {
      absl::StrAppend(&notes, answer.algorithm, ": ", note, "\n");
    }
  }
  return absl::StrCat(PrintTable(table),
                      "planned: time of a batch by the planner's own model\n",
                      notes.empty() ? "" : "\n", WrapText(notes));
}

std::string PlannerResultsCsv(const std::vector<PlannerResult>& answers) {
  std::string text =
      "algorithm,schedule,objective_seconds,batch_seconds,samples_per_second,"
      "peak_memory_bytes,fits_memory,lint_errors,stages,planned_batch_seconds,"
      "inference\n";
  for (const PlannerResult& answer : answers) {
    absl::StrAppend(&text, answer.algorithm, ",");
    if (!answer.planned.ok()) {
      const std::string why =
          absl::StrCat("no plan: ", Message(answer.planned));
      absl::StrAppend(&text, ",,,,,,,", CsvField(why), ",,\n");
      continue;
    }
    absl::StrAppendFormat(&text, "%s,%.9g,", CsvField(answer.plan.schedule),
                          answer.plan.objective_seconds);
    if (answer.simulated.ok()) {
      absl::StrAppendFormat(&text, "%.9g,%.9g,%.9g,%d,%d,",
                            answer.batch_seconds, answer.samples_per_second,
                            answer.peak_memory_bytes, answer.fits_memory,
                            answer.num_lint_errors);
    } else {
      absl::StrAppend(&text, ",,,,,");
    }
    absl::StrAppendFormat(
        &text, "%s,%.9g,%d\n", CsvField(StagesText(answer.plan)),
        PlannedBatchSeconds(answer.plan), answer.plan.inference);
  }
  return text;
}

std::string PlannerResultsJson(const std::vector<PlannerResult>& answers) {
  Json json = {{"answers", Json::array()}};
  for (const PlannerResult& answer : answers) {
    json["answers"].push_back(PlannerResultJson(answer));
  }
  return Dump(json);
}

}  // namespace weir::plan
