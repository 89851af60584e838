// SPDX-License-Identifier: Apache-2.0
// The JSON Schemas (draft 2020-12) of what weir reads and prints.
#ifndef WEIR_CLI_SCHEMA_SCHEMAS_H_
#define WEIR_CLI_SCHEMA_SCHEMAS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::cli {

// Part of the identifier of all schemas. Increases when a document that was
// valid would no longer be, or a member changes its meaning
// (docs/machine-interface.md).
inline constexpr int kSchemaVersion = 1;

struct NamedSchema {
  absl::string_view name;
  absl::string_view summary;
};

// Returns the names of all schemas.
const std::vector<NamedSchema>& AllSchemas();

// Returns a schema. Returns NotFound, with the most similar name, for an
// unknown name.
absl::StatusOr<nlohmann::ordered_json> SchemaOf(absl::string_view name);

}  // namespace weir::cli

#endif  // WEIR_CLI_SCHEMA_SCHEMAS_H_
