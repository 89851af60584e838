// SPDX-License-Identifier: Apache-2.0
// A setting in a file of a framework.
#ifndef WEIR_PLAN_FRAMEWORKS_SETTING_H_
#define WEIR_PLAN_FRAMEWORKS_SETTING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::plan {

struct Setting {
  // Without dashes; dots separate the levels of nested files:
  // "model.num_layers".
  std::string key;
  std::string value;  // a list as JSON: [["a","b"],["c"]]
  int line = 0;       // from 1; 0: not from a file
  bool has_value = true;
  // TOML and JSON distinguish strings from other values, which no other format
  // does.
  enum class Form { kAny, kString, kLiteral };
  Form form = Form::kAny;
};

// Returns the leaves of a YAML file, in order, with nested keys joined by dots.
// A null is left out. Lines "key=value" without YAML, as in OmegaConf's dotted
// overrides ("++model.num_layers=80"), are accepted too. "${a.b}" and "${.b}"
// that name another setting of the file are replaced by its value. Returns
// InvalidArgument with the line.
absl::StatusOr<std::vector<Setting>> ReadYamlSettings(const std::string& label,
                                                      absl::string_view text);

// Return the same for TOML and JSON.
absl::StatusOr<std::vector<Setting>> ReadTomlSettings(const std::string& label,
                                                      absl::string_view text);
absl::StatusOr<std::vector<Setting>> ReadJsonSettings(const std::string& label,
                                                      absl::string_view text);

// Prints settings whose keys have dots as YAML or TOML, in the order of their
// first level. Values print as numbers, truth values or lists where they are
// such.
std::string PrintYamlSettings(const std::vector<Setting>& settings);
std::string PrintTomlSettings(const std::vector<Setting>& settings);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_SETTING_H_
