// SPDX-License-Identifier: Apache-2.0
#include "cli/schema/schemas.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/schema/message_schema.h"
#include "cli/schema/object_schema.h"
#include "cli/schema/study_schemas.h"

namespace weir::cli {
namespace {

absl::StatusOr<Json> ResultSchema() {
  Json schema = EnvelopeSchema();
  AddMembers({kConfig, {"result", "object", ""}, kWarnings}, &schema);
  schema["properties"]["result"] = {{"$ref", "#/$defs/weir.Result"}};
  ASSIGN_OR_RETURN(schema["$defs"], ResultDefinitions());
  return schema;
}

absl::StatusOr<Json> CompareSchema() {
  Json schema = EnvelopeSchema();
  AddMembers(
      {{"config", "strings",
        "the scenarios with all defaults, as textproto, in the order of "
        "the results"},
       {"results", "array", "one per schedule that was simulated"},
       kWarnings,
       {"slack", "array", "with --slack: see docs/stragglers.md", false}},
      &schema);
  schema["properties"]["results"]["items"] = {{"$ref", "#/$defs/weir.Result"}};
  ASSIGN_OR_RETURN(schema["$defs"], ResultDefinitions());
  return schema;
}

absl::StatusOr<Json> EstimateSchema() {
  Json result = ObjectSchema(
      {{"schedule", "string", "its name with options"},
       {"method", "string", "how the time was found"},
       {"batch_seconds", "number", "time of a step"},
       {"makespan_seconds", "number", "of the run"},
       {"samples_per_second", "number", "absent with given costs", false},
       {"tokens_per_second", "number", "absent with given costs", false},
       {"peak_memory_bytes", "number", "of the worst GPU"},
       {"fits_memory", "boolean", "true with given costs"},
       {"rank_peak_memory_bytes", "numbers",
        "of the fullest GPU of each pipeline rank"},
       {"num_gpus", "integer", ""},
       {"num_simulated_gpus", "integer", "the others do the same"},
       {"not_reduced", "string", "why all GPUs were simulated", false},
       {"num_microbatches", "integer", "per batch and pipeline"},
       {"num_simulated_microbatches", "integer",
        "of all simulated batches; the others repeat"},
       {"not_extrapolated", "string", "why all microbatches were simulated",
        false},
       {"shared_links", "boolean", "flows shared links"},
       {"features", "strings",
        "features of the scenario beyond a plain pipeline", false},
       {"defaults", "object", "training options that were not given", false}});
  result["properties"]["defaults"] =
      ObjectSchema({{"set", "string", "name of the set of defaults"},
                    {"used", "strings", "options of the set"},
                    {"not_used", "strings",
                     "options that the scenario cannot use, and why"}});
  Json schema = EnvelopeSchema();
  AddMembers({kConfig, {"result", "object", ""}, kWarnings}, &schema);
  schema["properties"]["result"] = std::move(result);
  return schema;
}

Json PlanObjectSchema() {
  return ObjectSchema(
      {{"source", "string", "\"joint\", or the planner that found it"},
       {"schedule", "string", ""},
       {"tensor", "integer", "tensor-parallel size"},
       {"pipeline", "integer", "pipeline ranks"},
       {"data", "integer", "data-parallel size"},
       {"expert", "integer", "expert-parallel size"},
       {"context", "integer", "context-parallel size, if it was searched",
        false},
       {"expert_tensor", "integer", "GPUs that share an expert", false},
       {"data_replicate", "integer", "groups of hybrid sharding", false},
       {"cpu_offloading_num_layers", "string", "if some plan offloads blocks",
        false},
       {"optimizer_offload_fraction", "string",
        "if some plan has optimizer states on the host", false},
       {"vocabulary_parallel", "string", "if some plan uses it", false},
       {"overlap_moe_expert_parallel_comm", "string", "if some plan uses it",
        false},
       {"tp_comm_overlap", "string", "if some plan sets it", false},
       {"chunks", "integer", "stages per rank"},
       {"microbatch_size", "integer", "sequences"},
       {"recompute", "string", ""},
       {"layers", "string", "blocks per stage, or how they are divided"},
       {"order", "string", "numbering of GPUs"},
       {"distributed_optimizer", "boolean", ""},
       {"fully_sharded", "boolean", ""},
       {"sharding", "string", ""},
       {"sequence_parallel", "boolean", ""},
       {"gradient_reduction", "string", ""},
       {"num_gpus", "integer", ""},
       {"batch_seconds", "number", "time of a step"},
       {"batch_seconds_low", "number?",
        "the time lies between them in nine cases of ten"},
       {"batch_seconds_high", "number?", ""},
       {"samples_per_second", "number", ""},
       {"peak_memory_bytes", "number", "of the worst GPU"},
       {"peak_memory_bytes_low", "number?", ""},
       {"peak_memory_bytes_high", "number?", ""},
       {"lower_bound_seconds", "number",
        "no order of the same work on this layout is faster"},
       {"gap", "number", "batch_seconds / lower_bound_seconds - 1"},
       {"price_per_sample", "number?", "null: no price was given"},
       {"changes_training", "boolean",
        "without flush, or with lossy transfers"},
       {"semantics", "string", "weights used for gradients, in one line"},
       {"runtime_executes", "boolean", ""},
       {"equal_to", "strings", "omitted plans with the same time and memory"},
       {"why_not_best", "string", "empty for the best"},
       {"scenario", "string", "textproto for weir simulate"},
       {"flops_formula", "string", "", false},
       {"flops_per_second_per_gpu", "number?", "", false},
       {"flops_utilization", "number?", "", false},
       {"joules_per_step", "number", "with --objective energy", false},
       {"joules_per_token", "number?", "with --objective energy", false},
       {"watts_per_gpu", "number", "with --objective energy", false},
       {"tokens_per_second_per_gpu", "number", "with --tokens", false},
       {"tokens", "number", "with --tokens", false},
       {"gpu_hours", "number", "with --tokens", false},
       {"days", "number", "with --tokens", false},
       {"price", "number?", "with --tokens", false}});
}

absl::StatusOr<Json> PlanSchema() {
  Json counts = Json::object(), names = Json::array();
  for (const char* name :
       {"candidates", "invalid", "pruned_memory", "pruned_time", "duplicates",
        "ranked", "simulated", "left"}) {
    counts[name] = {{"type", "integer"}, {"minimum", 0}};
    names.push_back(name);
  }
  Json result = ObjectSchema(
      {{"plans", "array", "best first; for a Pareto front, by time"},
       {"counts", "object", "of candidates, by what became of them"},
       {"schedules", "strings", "considered"},
       {"defaults", "string", "training options that were not given"},
       {"schedules_of_runtime", "boolean",
        "whether these are all that the runtime executes"},
       {"memory_limit_bytes", "number", "that a plan may use per GPU"},
       {"end", "string", "why the search ended"},
       {"lower_bound_seconds", "number", "no plan of the space is faster"},
       {"proven_seconds", "number?", "no candidate is faster"},
       {"neighbors", "array", "that differ from the best in one choice"}});
  Json& properties = result["properties"];
  properties["plans"]["items"] = PlanObjectSchema();
  properties["counts"]["properties"] = std::move(counts);
  properties["counts"]["required"] = std::move(names);
  properties["end"]["enum"] = {"complete",   "gap",       "patience",
                               "time-limit", "interrupt", "unknown"};
  properties["neighbors"]["items"] =
      ObjectSchema({{"choice", "string", "\"tp 8\""},
                    {"batch_seconds", "number?", "null: does not fit"},
                    {"peak_memory_bytes", "number", ""},
                    {"fits", "boolean", ""},
                    {"difference", "string", "why it is worse, or better"},
                    {"scenario", "string", "textproto"}});
  return EnvelopeWith(
      ObjectSchema({{"request", "string", "weir.PlanRequest as textproto"}}),
      std::move(result));
}

absl::StatusOr<Json> ErrorSchema() {
  Json schema =
      ObjectSchema({{"severity", "string", ""},
                    {"message", "string", "all parts in one line"},
                    {"file", "string?", "file, preset or command"},
                    {"line", "integer?", "from 1"},
                    {"column", "integer?", "from 1"},
                    {"field", "string?", "field of the file, or flag"},
                    {"found", "string?", "the value"},
                    {"expected", "string?", "what was expected instead"},
                    {"details", "strings", "lines that explain the message"}});
  schema["properties"]["severity"]["enum"] = {"error", "warning", "note"};
  return schema;
}

absl::StatusOr<Json> ScenarioSchema() {
  return MessageSchema("weir.Scenario", SchemaUse::kInput);
}

absl::StatusOr<Json> BodyOf(absl::string_view name) {
  if (name == "scenario") return ScenarioSchema();
  if (name == "result") return ResultSchema();
  if (name == "compare") return CompareSchema();
  if (name == "estimate") return EstimateSchema();
  if (name == "plan") return PlanSchema();
  if (name == "explain") return ExplainSchema();
  if (name == "goodput") return GoodputSchema();
  if (name == "jobs") return JobsSchema();
  if (name == "planners") return PlannersSchema();
  return ErrorSchema();
}

}  // namespace

const std::vector<NamedSchema>& AllSchemas() {
  static const auto& schemas = *new std::vector<NamedSchema>{
      {"scenario", "a scenario as a JSON file, or in requests to weir serve"},
      {"result", "weir simulate --format json"},
      {"estimate", "weir simulate --method fast --format json"},
      {"compare", "weir compare --format json"},
      {"plan", "weir plan --format json"},
      {"planners", "weir plan --algorithm NAME --format json"},
      {"explain", "weir explain --format json"},
      {"goodput", "weir goodput --format json"},
      {"jobs", "weir jobs --format json"},
      {"error", "a line of standard error with --message-format json"}};
  return schemas;
}

absl::StatusOr<Json> SchemaOf(absl::string_view name) {
  std::vector<std::string> known;
  for (const NamedSchema& schema : AllSchemas()) {
    known.emplace_back(schema.name);
    if (schema.name != name) continue;
    Json document = {
        {"$schema", "https://json-schema.org/draft/2020-12/schema"},
        {"$id", absl::StrCat("urn:weir:schema:", kSchemaVersion, ":", name)},
        {"title", std::string(schema.summary)},
        {"$comment", absl::StrCat("weir ", WeirVersion())}};
    ASSIGN_OR_RETURN(const Json body, BodyOf(name));
    document.update(body);
    return document;
  }
  return absl::NotFoundError(
      absl::StrCat("weir schema: NAME is ", EscapeLine(name), ", expected ",
                   absl::StrJoin(known, ", "), DidYouMean(name, known)));
}

}  // namespace weir::cli
