// SPDX-License-Identifier: Apache-2.0
#include "cli/schema/object_schema.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cli/schema/message_schema.h"

namespace weir::cli {
namespace {

Json TypeSchema(absl::string_view type) {
  const bool or_null = absl::ConsumeSuffix(&type, "?");
  if (type == "strings" || type == "numbers") {
    type.remove_suffix(1);
    return {{"type", "array"}, {"items", {{"type", std::string(type)}}}};
  }
  if (or_null) return {{"type", {std::string(type), "null"}}};
  return {{"type", std::string(type)}};
}

const std::vector<Member>& EnvelopeMembers() {
  static const auto& members = *new std::vector<Member>{
      {"tool", "string", "\"weir\""},
      {"version", "string", "version of weir that computed the result"},
      {"command", "string", "the command line"}};
  return members;
}

}  // namespace

Json ObjectSchema(const std::vector<Member>& members) {
  Json properties = Json::object(), required = Json::array();
  for (const Member& member : members) {
    Json schema = TypeSchema(member.type);
    schema["description"] = std::string(member.description);
    properties[std::string(member.name)] = std::move(schema);
    if (member.is_required) required.push_back(std::string(member.name));
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)}};
}

void AddMembers(const std::vector<Member>& members, Json* object) {
  const Json more = ObjectSchema(members);
  (*object)["properties"].update(more["properties"]);
  for (const Json& name : more["required"]) {
    (*object)["required"].push_back(name);
  }
}

Json EnvelopeSchema() {
  Json schema = ObjectSchema(EnvelopeMembers());
  schema["properties"]["tool"] = {{"const", "weir"}};
  return schema;
}

Json EnvelopeWith(Json config, Json result) {
  Json schema = EnvelopeSchema();
  AddMembers({{"config", "object", ""}, {"result", "object", ""}, kWarnings},
             &schema);
  schema["properties"]["config"] = std::move(config);
  schema["properties"]["result"] = std::move(result);
  return schema;
}

absl::StatusOr<Json> ResultDefinitions() {
  ASSIGN_OR_RETURN(Json schema,
                   MessageSchema("weir.Result", SchemaUse::kOutput));
  Json definitions = std::move(schema["$defs"]);
  Json& result = definitions["weir.Result"];
  for (const char* name :
       {"timeline", "host_copies", "link_use", "run_slack"}) {
    result["properties"].erase(name);
  }
  AddMembers({{"tokens_per_second_per_gpu", "number?",
               "absent with given costs", false},
              {"flops_per_second_per_gpu", "number?",
               "by flops_formula; absent with given costs", false},
              {"features", "strings",
               "features of the scenario beyond a plain pipeline", false},
              {"energy", "object", "with --energy: see docs/energy.md", false}},
             &result);
  // The timeline's messages are not used.
  std::vector<std::string> unused;
  for (const auto& [name, definition] : definitions.items()) {
    for (const char* type : {"weir.Timeline", "weir.HostCopies", "weir.LinkUse",
                             "weir.RunSlack"}) {
      if (absl::StartsWith(name, type)) unused.push_back(name);
    }
  }
  for (const std::string& name : unused) definitions.erase(name);
  return definitions;
}

}  // namespace weir::cli
