// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/yaml.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/json_text.h"
#include "base/problems.h"
#include "plan/frameworks/setting.h"

namespace weir::plan {
namespace {

// Aliases can make a small file describe any number of settings.
constexpr size_t kMaxSettings = 20000;
constexpr int kMaxYamlDepth = 50;

class YamlLeaves {
 public:
  explicit YamlLeaves(const std::string& label) : problems_(label) {}

  absl::StatusOr<std::vector<Setting>> Read(const YAML::Node& root) {
    if (!root.IsMap()) {
      problems_.Add("", "is not a YAML file of settings");
    } else {
      AddMap(root, "", 0);
    }
    if (!problems_.empty()) return problems_.ToStatus();
    return std::move(settings_);
  }

 private:
  static int LineOf(const YAML::Node& node) { return node.Mark().line + 1; }

  bool IsTooLarge(const YAML::Node& node, int depth) {
    if (depth <= kMaxYamlDepth && num_nodes_++ <= kMaxSettings) return false;
    if (problems_.empty()) {
      problems_.AddAt(LineOf(node), "",
                      absl::StrCat("has more than ", kMaxSettings,
                                   " values or ", kMaxYamlDepth, " levels"));
    }
    return true;
  }

  void AddMap(const YAML::Node& map, const std::string& prefix, int depth) {
    for (const auto& entry : map) {
      const YAML::Node key = entry.first, value = entry.second;
      if (IsTooLarge(value, depth)) return;
      if (!key.IsScalar()) {
        problems_.AddAt(LineOf(key), "", "has a key that is not a word");
        return;
      }
      const std::string name = absl::StrCat(prefix, key.Scalar());
      if (value.IsMap()) {
        AddMap(value, name + ".", depth + 1);
      } else if (value.IsSequence()) {
        settings_.push_back(
            {name, DumpJson(ListOf(value, depth + 1)), LineOf(key), true});
      } else if (value.IsScalar() && value.Scalar() != "null" &&
                 value.Scalar() != "~") {
        settings_.push_back({name, value.Scalar(), LineOf(key), true});
      }
    }
  }

  nlohmann::ordered_json ListOf(const YAML::Node& list, int depth) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const YAML::Node& item : list) {
      if (IsTooLarge(item, depth)) break;
      if (item.IsSequence()) {
        json.push_back(ListOf(item, depth + 1));
      } else if (item.IsMap()) {
        json.push_back("{...}");
      } else if (int64_t number = 0;
                 item.IsScalar() &&
                 YAML::convert<int64_t>::decode(item, number)) {
        json.push_back(number);
      } else {
        json.push_back(item.IsScalar() ? item.Scalar() : "null");
      }
    }
    return json;
  }

  Problems problems_;
  std::vector<Setting> settings_;
  size_t num_nodes_ = 0;
};

// Reads lines "key=value"; nullopt if a line is something else.
std::optional<std::vector<Setting>> ReadDotted(absl::string_view text) {
  std::vector<Setting> settings;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    absl::ConsumeSuffix(&line, "\\");
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    while (absl::ConsumePrefix(&line, "+")) {
    }
    const size_t equals = line.find('=');
    if (equals == 0 || equals == absl::string_view::npos) return {};
    const absl::string_view key = line.substr(0, equals);
    for (const char c : key) {
      if (!absl::ascii_isalnum(c) && c != '_' && c != '.' && c != '-')
        return {};
    }
    absl::string_view value = line.substr(equals + 1);
    for (const char* quote : {"\"", "'"}) {
      if (value.size() >= 2 && absl::StartsWith(value, quote) &&
          absl::EndsWith(value, quote)) {
        value = value.substr(1, value.size() - 2);
        break;
      }
    }
    if (value == "null") continue;
    settings.push_back({std::string(key), std::string(value), number, true});
  }
  if (settings.empty()) return {};
  return settings;
}

// Replaces values "${a.b}" and "${.b}" by those of other settings.
void ResolveReferences(std::vector<Setting>* settings) {
  std::map<std::string, std::string> values;
  for (const Setting& setting : *settings) {
    values[setting.key] = setting.value;
  }
  constexpr int kMaxSteps = 10;  // of references to references
  for (Setting& setting : *settings) {
    for (int step = 0; step < kMaxSteps; ++step) {
      absl::string_view name = setting.value;
      if (!absl::ConsumePrefix(&name, "${") ||
          !absl::ConsumeSuffix(&name, "}")) {
        break;
      }
      std::string key(name);
      if (absl::ConsumePrefix(&name, ".")) {
        key = absl::StrCat(setting.key.substr(0, setting.key.rfind('.') + 1),
                           name);
      }
      const auto found = values.find(key);
      if (found == values.end()) break;
      setting.value = found->second;
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<Setting>> ReadYamlSettings(const std::string& label,
                                                      absl::string_view text) {
  if (std::optional<std::vector<Setting>> dotted = ReadDotted(text)) {
    ResolveReferences(&*dotted);
    return *std::move(dotted);
  }
  // yaml-cpp reports errors by exceptions.
  try {
    absl::StatusOr<std::vector<Setting>> settings =
        YamlLeaves(label).Read(YAML::Load(std::string(text)));
    if (settings.ok()) ResolveReferences(&*settings);
    return settings;
  } catch (const YAML::Exception& error) {
    Problems problems(label);
    problems.AddAt(error.mark.line + 1, "",
                   absl::StrCat("is not YAML: ", error.msg));
    return problems.ToStatus();
  }
}

}  // namespace weir::plan
