// SPDX-License-Identifier: Apache-2.0
// Schemas of the outputs of "explain", "goodput", "jobs" and "plan
// --algorithm".
// Functions return Internal if weir was built without its messages.
#ifndef WEIR_CLI_SCHEMA_STUDY_SCHEMAS_H_
#define WEIR_CLI_SCHEMA_STUDY_SCHEMAS_H_

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"

namespace weir::cli {

absl::StatusOr<nlohmann::ordered_json> ExplainSchema();
nlohmann::ordered_json GoodputSchema();
nlohmann::ordered_json JobsSchema();
nlohmann::ordered_json PlannersSchema();

}  // namespace weir::cli

#endif  // WEIR_CLI_SCHEMA_STUDY_SCHEMAS_H_
