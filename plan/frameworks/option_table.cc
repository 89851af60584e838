// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/option_table.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/assets.h"
#include "base/textproto.h"

namespace weir::plan {
namespace {

FrameworkTable Load(absl::string_view name) {
  FrameworkTable table;
  const std::optional<Asset> asset = FindPreset("plan/frameworks/tables", name);
  // The tables are part of the program, and tests read all of them.
  if (!asset.has_value() ||
      !ParseTextProto(asset->label, asset->contents, &table).ok()) {
    std::abort();
  }
  return table;
}

bool HasType(const OptionGroup& group, const Setting& setting) {
  if (setting.value == "null") return true;  // YAML: not given
  int64_t whole = 0;
  double real = 0;
  switch (group.type()) {
    case OPTION_SWITCH:
      return !setting.has_value || setting.value == "true" ||
             setting.value == "false";
    case OPTION_WHOLE:
      return absl::SimpleAtoi(setting.value, &whole);
    case OPTION_REAL:
      return absl::SimpleAtod(setting.value, &real);
    case OPTION_TEXT:
      return setting.has_value &&
             (group.choices().empty() ||
              std::find(group.choices().begin(), group.choices().end(),
                        setting.value) != group.choices().end());
    default:
      return true;
  }
}

}  // namespace

const OptionTable& OptionTable::Of(absl::string_view name) {
  static auto& tables = *new std::map<std::string, OptionTable*, std::less<>>();
  auto found = tables.find(name);
  if (found == tables.end()) {
    found = tables.emplace(name, new OptionTable(Load(name))).first;
  }
  return *found->second;
}

OptionTable::OptionTable(FrameworkTable table) : table_(std::move(table)) {
  for (const OptionGroup& group : table_.groups()) {
    for (const std::string& name : group.names()) {
      absl::string_view stem = name;
      if (absl::ConsumeSuffix(&stem, "*")) {
        prefixes_[std::string(stem)] = &group;
      } else {
        exact_[name] = &group;
      }
    }
  }
}

const OptionGroup* OptionTable::Find(absl::string_view name) const {
  const auto found = exact_.find(name);
  if (found != exact_.end()) return found->second;
  const OptionGroup* best = nullptr;
  size_t longest = 0;
  for (const auto& [prefix, group] : prefixes_) {
    if (absl::StartsWith(name, prefix) && prefix.size() >= longest) {
      best = group;
      longest = prefix.size();
    }
  }
  return best;
}

std::vector<std::string> OptionTable::Refusals(
    const std::vector<Setting>& settings) const {
  std::vector<std::string> refusals;
  std::set<std::string> given;
  for (const Setting& setting : settings) {
    given.insert(setting.key);
    const OptionGroup* group = Find(setting.key);
    if (group == nullptr) {
      refusals.push_back(absl::StrCat(setting.key, " is unknown"));
    } else if (!group->until().empty()) {
      refusals.push_back(absl::StrCat(
          setting.key, " exists only until version ", group->until()));
    } else if (!HasType(*group, setting)) {
      refusals.push_back(absl::StrCat(
          setting.key, " is ", setting.value, ", expected ",
          group->choices().empty() ? OptionType_Name(group->type())
                                   : absl::StrJoin(group->choices(), " or ")));
    }
  }
  for (const auto& [name, group] : exact_) {
    if (group->required() && !given.contains(name)) {
      refusals.push_back(absl::StrCat(name, " is missing"));
    }
  }
  return refusals;
}

}  // namespace weir::plan
