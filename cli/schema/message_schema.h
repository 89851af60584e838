// SPDX-License-Identifier: Apache-2.0
// JSON Schemas of protocol buffers, as weir reads and prints them: proto3's
// JSON mapping with the names of the .proto files. Descriptions are the
// comments of the .proto files, which are embedded in the program.
#ifndef WEIR_CLI_SCHEMA_MESSAGE_SCHEMA_H_
#define WEIR_CLI_SCHEMA_MESSAGE_SCHEMA_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace weir::cli {

enum class SchemaUse {
  // All members are optional, others are errors.
  kInput,
  // Members that are always printed are required. Further ones may follow in
  // later versions. Numbers that are not finite are null.
  kOutput,
};

// Returns {"$ref": ..., "$defs": {...}} for a message, with a definition for
// every message and enum that it uses. `name` is the full name
// ("weir.Scenario"). Returns Internal if no embedded .proto file has it.
absl::StatusOr<nlohmann::ordered_json> MessageSchema(const std::string& name,
                                                     SchemaUse use);

}  // namespace weir::cli

#endif  // WEIR_CLI_SCHEMA_MESSAGE_SCHEMA_H_
