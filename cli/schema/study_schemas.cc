// SPDX-License-Identifier: Apache-2.0
#include "cli/schema/study_schemas.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "cli/schema/object_schema.h"

namespace weir::cli {
namespace {

Json ListOf(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

// Returns the schema of a mean with 5th and 95th percentile.
Json MeanSchema() {
  return ObjectSchema({{"mean", "number", "over the simulated runs"},
                       {"low", "number", "5th percentile"},
                       {"high", "number", "95th percentile"}});
}

// Returns the schema of what could explain a measured time.
Json MeasuredSchema() {
  Json schema = ObjectSchema(
      {{"seconds", "number", "measured time of a step"},
       {"error", "number", "predicted / measured - 1"},
       {"inside_interval", "boolean", "of the prediction", false},
       {"settings", "array", "other settings of the run, nearest first"},
       {"parts", "array", "of the busiest GPU's time"},
       {"parameters", "array",
        "that alone could explain the difference, least surprising first"},
       {"insufficient_parameters", "strings",
        "that cannot explain the difference alone"}});
  Json& members = schema["properties"];
  members["settings"]["items"] =
      ObjectSchema({{"setting", "string", "the one change"},
                    {"batch_seconds", "number", "predicted with it"}});
  members["parts"]["items"] = ObjectSchema(
      {{"name", "string", ""},
       {"seconds", "number", ""},
       {"factor", "number?",
        "by which it alone would have to change; null: none does"}});
  members["parameters"]["items"] = ObjectSchema(
      {{"owner", "string", "device, runtime or cluster"},
       {"path", "string", "as --set takes it"},
       {"kind", "string", "of its source: measured, fitted, datasheet ..."},
       {"value", "number", ""},
       {"explaining_value", "number", "that reproduces the measured time"},
       {"factor", "number", "explaining_value / value"},
       {"relative_error", "number", "its own uncertainty"},
       {"deviations", "number?",
        "the change in standard deviations; null: without uncertainty"}});
  return schema;
}

Json GoodputResultSchema() {
  Json schema = ObjectSchema(
      {{"mean_seconds_between_failures", "number", "of the job"},
       {"failures", "array", "by class of component"},
       {"checkpoint_stall_seconds", "number", "training waits"},
       {"checkpoint_safe_seconds", "number",
        "until a failure no longer loses it"},
       {"checkpoint_load_seconds", "number", ""},
       {"work_seconds", "number", "of training, without failures"},
       {"young_interval_seconds", "number", "between checkpoints"},
       {"daly_interval_seconds", "number", ""},
       {"exact_interval_seconds", "number", "minimum of Daly's equation 20"},
       {"interval_steps", "integer", "best of the simulation, or the given"},
       {"interval_seconds", "number", ""},
       {"flat_interval_steps", "array",
        "intervals from and to which the time is within 0.1 % of the best"},
       {"tried_intervals", "array", "simulated intervals between checkpoints"},
       {"goodput", "number", "training / wall time"},
       {"daly_goodput", "number", "by Daly's equation 20", false},
       {"wall_seconds", "object", ""},
       {"wall_standard_error", "number", "of the mean"},
       {"days", "object", ""},
       {"cost", "object", "with --price-per-gpu-hour", false},
       {"num_failures", "object", ""},
       {"shares", "object", "of the wall time"},
       {"most_lost_seconds", "number", "work lost by one failure at most"},
       {"mean_loss_seconds", "number",
        "time lost per failure, with checkpoints and recovery"},
       {"target_goodput", "number", "with --target-goodput", false},
       {"largest_loss_seconds", "number",
        "mean time lost per failure that reaches it", false},
       {"investments", "array", "what would shorten the run, best first"}});
  Json& members = schema["properties"];
  for (const char* name : {"wall_seconds", "days", "cost", "num_failures"}) {
    members[name] = MeanSchema();
  }
  members["flat_interval_steps"]["items"] = {{"type", "integer"}};
  members["tried_intervals"]["items"] =
      ObjectSchema({{"interval_steps", "integer", ""},
                    {"interval_seconds", "number", ""},
                    {"wall_seconds", "number", "mean"},
                    {"goodput", "number", ""}});
  members["failures"]["items"] =
      ObjectSchema({{"name", "string", ""},
                    {"mean_seconds_between", "number", "of the job"},
                    {"replaces_node", "boolean", ""},
                    {"repair_seconds", "number", "of a node"}});
  members["shares"] =
      ObjectSchema({{"training", "number", ""},
                    {"checkpoint_stalls", "number", ""},
                    {"lost_work", "number", ""},
                    {"recovery", "number", ""},
                    {"waiting", "number", "for a repaired node"},
                    {"fewer_replicas", "number", "longer work meanwhile"}});
  members["investments"]["items"] = ObjectSchema(
      {{"what", "string", "the figure that is improved"},
       {"change", "string", "how"},
       {"saved_seconds", "number", "of the wall time"},
       {"elasticity", "number",
        "relative change of the wall time per relative change", false},
       {"elasticity_standard_error", "number", "", false}});
  return schema;
}

Json PlannerResultSchema() {
  Json schema = ObjectSchema(
      {{"algorithm", "string", ""},
       {"error", "string", "why there is no plan", false},
       {"schedule", "string", "", false},
       {"objective_seconds", "number", "what the planner minimizes", false},
       {"planned_batch_seconds", "number",
        "time of a step by the planner's own model", false},
       {"inference", "boolean", "forward passes only", false},
       {"num_microbatches", "integer", "", false},
       {"microbatch_size", "integer", "sequences", false},
       {"stages", "array", "", false},
       {"notes", "strings", "", false},
       {"not_simulated", "string", "why not", false},
       {"simulated", "object", "the plan in a full simulation", false}});
  Json& members = schema["properties"];
  members["stages"]["items"] =
      ObjectSchema({{"first_layer", "integer", ""},
                    {"end_layer", "integer", "after the last"},
                    {"replicas", "integer", ""},
                    {"devices", "array", "numbers of GPUs"},
                    {"recompute", "boolean", ""},
                    {"swap", "boolean", "activations to the host"}});
  members["stages"]["items"]["properties"]["devices"]["items"] = {
      {"type", "integer"}};
  members["simulated"] =
      ObjectSchema({{"batch_seconds", "number", "time of a step"},
                    {"samples_per_second", "number", ""},
                    {"peak_memory_bytes", "number", "of the worst GPU"},
                    {"fits_memory", "boolean", ""},
                    {"lint_errors", "integer", ""}});
  return schema;
}

// Returns the schema of PipeDream's plan of a profile graph.
Json GraphPlanSchema() {
  const std::vector<Member> stage = {{"first_state", "integer", ""},
                                     {"end_state", "integer", "after the last"},
                                     {"seconds", "number", "of a minibatch"},
                                     {"replicas", "integer", ""}};
  Json schema =
      ObjectSchema({{"pipeline_time_seconds", "number", "per minibatch"},
                    {"single_stage_time_seconds", "number", "on one machine"},
                    {"data_parallel_time_seconds", "number", ""},
                    {"num_states", "integer", ""},
                    {"stages", "array", ""},
                    {"levels", "array", "stages of each level of machines"}});
  Json with_nodes = ObjectSchema(stage);
  AddMembers({{"nodes", "strings", "of the graph"}}, &with_nodes);
  schema["properties"]["stages"]["items"] = std::move(with_nodes);
  schema["properties"]["levels"]["items"] = ListOf(ObjectSchema(stage));
  return schema;
}

}  // namespace

absl::StatusOr<Json> ExplainSchema() {
  Json schema = EnvelopeSchema();
  AddMembers({kConfig, {"result", "object", ""}, kWarnings}, &schema);
  schema["properties"]["result"] = {{"$ref", "#/$defs/weir.Result"}};
  ASSIGN_OR_RETURN(schema["$defs"], ResultDefinitions());
  Json& result = schema["$defs"]["weir.Result"];
  AddMembers(
      {{"parameters", "array", "that change the time, most influential first"},
       {"num_parameters_without_influence", "integer", ""},
       {"parts_by_kind", "object",
        "sums of absolute elasticities by kind of source"},
       {"measured", "object", "with --measured", false}},
      &result);
  result["properties"]["parameters"]["items"] = ObjectSchema(
      {{"owner", "string", "device, runtime or cluster"},
       {"path", "string", "as --set takes it"},
       {"value", "number", ""},
       {"kind", "string", "of its source: measured, fitted, datasheet ..."},
       {"source", "string", ""},
       {"elasticity", "number", "d ln(batch_seconds) / d ln(value)"}});
  result["properties"]["parts_by_kind"]["additionalProperties"] = {
      {"type", "number"}};
  result["properties"]["measured"] = MeasuredSchema();
  return schema;
}

Json GoodputSchema() {
  return EnvelopeWith(
      ObjectSchema(
          {{"job", "string", "name of the scenario"},
           {"num_gpus", "integer", ""},
           {"num_nodes", "integer", ""},
           {"reliability", "string", "preset or file"},
           {"reliability_source", "string", ""},
           {"step_seconds", "number", ""},
           {"step_seconds_low", "number",
            "the time lies between them in nine cases of ten", false},
           {"step_seconds_high", "number", "", false},
           {"tokens_per_step", "number", "", false},
           {"tokens", "number", "of the run", false},
           {"checkpoint", "string", "sync, async or in-memory"},
           {"checkpoint_bytes", "number", ""},
           {"storage_bytes_per_second", "number", "", false},
           {"snapshot_bytes_per_second", "number", "of a GPU to its host"},
           {"peer_bytes_per_second", "number", "of a host to another"},
           {"detection_seconds", "number", ""},
           {"restart_seconds", "number", ""},
           {"num_spares", "integer", "absent: unlimited", false},
           {"num_elastic_replicas", "integer", "", false},
           {"price_per_gpu_hour", "number", "", false},
           {"num_runs", "integer", "simulated"},
           {"seed", "integer", ""}}),
      GoodputResultSchema());
}

Json JobsSchema() {
  Json result = ObjectSchema({{"jobs", "array", "in the order given"}});
  Json job = ObjectSchema(
      {{"job", "integer", "its number, from 1"},
       {"scenario", "string", "as given"},
       {"gpus", "array", "numbers of its GPUs in the cluster"},
       {"alone_seconds", "number", "time of a step without the other jobs"},
       {"step_seconds", "number", "mean time of a step with them"},
       {"slowdown", "number", "step_seconds / alone_seconds"},
       {"num_steps", "integer", "simulated"},
       {"shares_with", "array", "numbers of the jobs that use its links"},
       {"peak_memory_bytes", "number", "of the worst GPU"},
       {"fits_memory", "boolean", ""}});
  for (const char* name : {"gpus", "shares_with"}) {
    job["properties"][name]["items"] = {{"type", "integer"}};
  }
  result["properties"]["jobs"]["items"] = std::move(job);
  return EnvelopeWith(
      ObjectSchema({{"scenarios", "strings", "as given"},
                    {"num_nodes", "integer", "of the cluster"}}),
      std::move(result));
}

Json PlannersSchema() {
  Json answers = ObjectSchema({{"answers", "array", "one per planner"}});
  answers["properties"]["answers"]["items"] = PlannerResultSchema();
  Json config = ObjectSchema(
      {{"algorithm", "string", ""},
       {"graph", "string", "only with --graph, also below", false},
       {"machines", "array", "at each level", false},
       {"bandwidth", "numbers", "bytes per second at each level", false},
       {"straight", "boolean", "", false},
       {"fewer_machines", "boolean", "", false},
       {"paper_formula", "boolean", "", false},
       {"activation_compression_ratio", "number", "", false},
       {"memory_limit_bytes", "number", "", false},
       {"use_memory_constraint", "boolean", "", false}});
  config["properties"]["machines"]["items"] = {{"type", "integer"}};
  Json schema = EnvelopeWith(std::move(config), Json());
  schema["properties"]["result"] = {
      {"anyOf", {std::move(answers), GraphPlanSchema()}}};
  return schema;
}

}  // namespace weir::cli
