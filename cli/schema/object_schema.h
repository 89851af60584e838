// SPDX-License-Identifier: Apache-2.0
// Schemas of objects that no .proto file describes, and of the envelope that
// commands share.
#ifndef WEIR_CLI_SCHEMA_OBJECT_SCHEMA_H_
#define WEIR_CLI_SCHEMA_OBJECT_SCHEMA_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::cli {

using Json = nlohmann::ordered_json;

// A member of an object that no .proto file describes.
struct Member {
  absl::string_view name;
  // A type of JSON Schema; "strings", "numbers": lists of them; with '?': or
  // null.
  absl::string_view type;
  absl::string_view description;
  bool is_required = true;
};

Json ObjectSchema(const std::vector<Member>& members);

// Appends the members to an object's schema.
void AddMembers(const std::vector<Member>& members, Json* object);

// Returns the envelope with only the members "tool", "version" and "command".
Json EnvelopeSchema();

inline constexpr Member kWarnings = {"warnings", "strings",
                                     "messages about the result"};
inline constexpr Member kConfig = {
    "config", "string", "the scenario with all defaults, as textproto"};

// Returns the envelope with "config", "result" and "warnings".
Json EnvelopeWith(Json config, Json result);

// Returns the definitions of weir.Result as it is printed. Returns Internal if
// weir was built without its messages.
absl::StatusOr<Json> ResultDefinitions();

}  // namespace weir::cli

#endif  // WEIR_CLI_SCHEMA_OBJECT_SCHEMA_H_
