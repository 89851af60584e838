// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/json_text.h"
#include "plan/frameworks/setting.h"

namespace weir::plan {
namespace {

// Numbers, truth values and lists have the same form in YAML, TOML and JSON,
// and so have quoted strings without control characters.
std::string ValueText(const Setting& setting) {
  const std::string& value = setting.value;
  double number = 0;
  if (setting.form == Setting::Form::kString) {
    return DumpJson(nlohmann::json(value));
  }
  if (value == "true" || value == "false" || value == "null" ||
      absl::StartsWith(value, "[") ||
      (!value.empty() && absl::SimpleAtod(value, &number))) {
    return value;
  }
  return DumpJson(nlohmann::json(value));
}

std::vector<std::string> LevelsOf(const Setting& setting) {
  return absl::StrSplit(setting.key, '.');
}

}  // namespace

std::string PrintYamlSettings(const std::vector<Setting>& settings) {
  std::string text;
  std::vector<std::string> open;  // levels of the previous setting
  for (const Setting& setting : settings) {
    const std::vector<std::string> levels = LevelsOf(setting);
    size_t common = 0;
    while (common + 1 < levels.size() && common + 1 < open.size() &&
           levels[common] == open[common]) {
      ++common;
    }
    for (size_t i = common; i < levels.size(); ++i) {
      absl::StrAppend(&text, std::string(2 * i, ' '), levels[i], ":",
                      i + 1 < levels.size()
                          ? "\n"
                          : absl::StrCat(" ", ValueText(setting), "\n"));
    }
    open = levels;
  }
  return text;
}

std::string PrintTomlSettings(const std::vector<Setting>& settings) {
  std::string text, section;
  for (const Setting& setting : settings) {
    std::vector<std::string> levels = LevelsOf(setting);
    const std::string name = levels.back();
    levels.pop_back();
    const std::string own = absl::StrJoin(levels, ".");
    if (own != section) {
      absl::StrAppend(&text, text.empty() ? "" : "\n", "[", own, "]\n");
      section = own;
    }
    absl::StrAppend(&text, name, " = ", ValueText(setting), "\n");
  }
  return text;
}

}  // namespace weir::plan
