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
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/assets.h"
#include "base/spelling.h"
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
  using Form = Setting::Form;
  if (setting.value == "null") return true;  // YAML: not given
  int64_t whole = 0;
  double real = 0;
  switch (group.type()) {
    case OPTION_SWITCH:
      return setting.form != Form::kString &&
             (!setting.has_value || setting.value == "true" ||
              setting.value == "false");
    case OPTION_WHOLE:
      return setting.form != Form::kString &&
             absl::SimpleAtoi(setting.value, &whole);
    case OPTION_REAL:
      return setting.form != Form::kString &&
             absl::SimpleAtod(setting.value, &real);
    case OPTION_TEXT:
      return setting.has_value && setting.form != Form::kLiteral &&
             (group.choices().empty() ||
              std::find(group.choices().begin(), group.choices().end(),
                        setting.value) != group.choices().end());
    case OPTION_LIST:
      return setting.form == Form::kAny || setting.value[0] == '[';
    default:
      return true;
  }
}

std::string DescriptionOf(const OptionGroup& group) {
  if (!group.choices().empty()) return absl::StrJoin(group.choices(), " or ");
  switch (group.type()) {
    case OPTION_SWITCH:
      return "true or false";
    case OPTION_WHOLE:
      return "a whole number";
    case OPTION_REAL:
      return "a number";
    case OPTION_LIST:
      return "a list";
    default:
      return "a string";
  }
}

std::vector<absl::string_view> WordsOf(absl::string_view name) {
  return absl::StrSplit(name, absl::ByAnyChar("-_."));
}

// Returns true if `name` begins like `known` and has its words in the same
// order, but lacks one, or up to two if it has three or more:
// "tensor-parallel-size".
bool LacksWords(absl::string_view name, absl::string_view known) {
  const std::vector<absl::string_view> words = WordsOf(name);
  const std::vector<absl::string_view> all = WordsOf(known);
  const size_t most = words.size() >= 3 ? 2 : 1;
  if (words.size() < 2 || words[0] != all[0] || all.size() <= words.size() ||
      all.size() - words.size() > most) {
    return false;
  }
  size_t next = 0;
  for (const absl::string_view word : all) {
    if (next < words.size() && words[next] == word) ++next;
  }
  return next == words.size();
}

// Returns how many letters of a misspelled name may differ.
int MostDifferences(absl::string_view name) {
  const size_t dot = name.rfind('.');
  const size_t length =
      dot == absl::string_view::npos ? name.size() : name.size() - dot - 1;
  return std::clamp(static_cast<int>(length) / 3, 1, 3);
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

bool OptionTable::IsSection(absl::string_view name) const {
  const std::string prefix = absl::StrCat(name, ".");
  for (auto at = exact_.lower_bound(prefix);
       at != exact_.end() && absl::StartsWith(at->first, prefix); ++at) {
    if (at->second->effect() == OPTION_READ) return !exact_.contains(name);
  }
  return false;
}

std::string OptionTable::Resembled(absl::string_view name) const {
  constexpr size_t kLongestName = 64;
  const OptionGroup* family = Find(name);
  if (exact_.contains(name) || name.size() > kLongestName ||
      (family != nullptr && family->effect() != OPTION_WITHOUT_EFFECT)) {
    return "";
  }
  // A family of options without effect has many similar names.
  const int most = family != nullptr ? 1 : MostDifferences(name);
  std::string nearest;
  int least = most + 1;
  OptionEffect effect = OPTION_EFFECT_UNSPECIFIED;
  // Of equally similar options, one that is read is more likely than one that
  // is refused, and one without effect less likely.
  const auto is_likelier = [&effect](OptionEffect other) {
    return other != effect &&
           (other == OPTION_READ || effect == OPTION_WITHOUT_EFFECT);
  };
  for (const auto& [known, group] : exact_) {
    const size_t shorter = std::min(known.size(), name.size());
    const size_t longer = std::max(known.size(), name.size());
    int distance = most + 1;
    if (family == nullptr && LacksWords(name, known)) {
      distance = most;
    } else if (longer - shorter <= static_cast<size_t>(most)) {
      distance = EditDistance(name, known);
    }
    if (distance > most || distance > least ||
        (distance == least && !is_likelier(group->effect()))) {
      continue;
    }
    nearest = known;
    least = distance;
    effect = group->effect();
  }
  return effect == OPTION_WITHOUT_EFFECT ? "" : nearest;
}

std::string OptionTable::ExpectedInstead(const Setting& setting) const {
  const OptionGroup* group = Find(setting.key);
  if (group == nullptr || HasType(*group, setting)) return "";
  return DescriptionOf(*group);
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
      refusals.push_back(absl::StrCat(setting.key, " is ", setting.value,
                                      ", expected ", DescriptionOf(*group)));
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
