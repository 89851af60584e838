// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/import_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weir::plan {
namespace {

constexpr size_t kMaxShown = 3;  // names per reason

// Returns true for values that turn an option off.
bool IsOff(const Setting& setting) {
  for (const char* off : {"", "false", "False", "null", "None", "none", "0",
                          "0.0", "[]", "no_shard", "disabled"}) {
    if (setting.has_value && setting.value == off) return true;
  }
  return false;
}

std::string ShownSetting(const Setting& setting) {
  if (!setting.has_value) return setting.key;
  return absl::StrCat(setting.key, " = ", setting.value);
}

}  // namespace

void SettingSorter::Ignore(Setting setting, const std::string& reason) {
  setting.key = prefix_ + setting.key;
  report_.ignored.push_back({std::move(setting), reason});
}

bool SettingSorter::IsRead(const Setting& setting) {
  if (left_out_.contains(setting.key)) {
    Ignore(setting, "left out as requested");
    return false;
  }
  const OptionGroup* group = table_.Find(setting.key);
  if (group == nullptr) {
    Ignore(setting,
           absl::StrCat("not in weir's table of ", table_.table().framework(),
                        " ", table_.table().version()));
    return false;
  }
  if (group->effect() == OPTION_READ) {
    report_.used.push_back(setting);
    report_.used.back().key = prefix_ + setting.key;
    return true;
  }
  if (group->effect() == OPTION_WITHOUT_EFFECT) {
    Ignore(setting, group->subject());
  } else if (IsOff(setting)) {
    Ignore(setting, "turned off");
  } else {
    problems_.AddAt(
        setting.line, prefix_ + setting.key,
        absl::StrCat(
            setting.has_value ? absl::StrCat("is ", setting.value, ", which ")
                              : "",
            "is not simulated (", group->subject(),
            "): remove it, or predict the run without it by --leave-out ",
            setting.key));
  }
  return false;
}

std::string SummaryOf(const ImportReport& report) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const IgnoredSetting& ignored : report.ignored) {
    std::vector<std::string>& names = by_reason[ignored.reason];
    if (std::find(names.begin(), names.end(), ignored.setting.key) ==
        names.end()) {
      names.push_back(ignored.setting.key);
    }
  }
  std::string text =
      absl::StrCat(report.file, ": read ", report.used.size(), " of ",
                   report.used.size() + report.ignored.size(), " settings of ",
                   report.framework);
  std::vector<std::string> groups;
  for (auto& [reason, names] : by_reason) {
    const size_t num_more =
        names.size() > kMaxShown ? names.size() - kMaxShown : 0;
    names.resize(names.size() - num_more);
    groups.push_back(absl::StrCat(
        reason, " (", absl::StrJoin(names, ", "),
        num_more > 0 ? absl::StrCat(", ", num_more, " more") : "", ")"));
  }
  if (!groups.empty()) {
    absl::StrAppend(&text, "; ignored: ", absl::StrJoin(groups, "; "));
  }
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, "; ", note);
  }
  return text;
}

std::vector<std::string> LinesOf(const ImportReport& report) {
  std::vector<std::string> lines = {
      absl::StrCat(report.file, ": ", report.framework)};
  const auto place = [](const Setting& setting) {
    return setting.line > 0 ? absl::StrCat("line ", setting.line, ": ") : "";
  };
  for (const Setting& setting : report.used) {
    lines.push_back(
        absl::StrCat("read: ", place(setting), ShownSetting(setting)));
  }
  for (const IgnoredSetting& ignored : report.ignored) {
    lines.push_back(absl::StrCat("ignored: ", place(ignored.setting),
                                 ShownSetting(ignored.setting), ": ",
                                 ignored.reason));
  }
  for (const std::string& note : report.notes) {
    lines.push_back(absl::StrCat("note: ", note));
  }
  return lines;
}

nlohmann::ordered_json JsonOf(const ImportReport& report) {
  const auto entry = [](const Setting& setting) {
    nlohmann::ordered_json json;
    json["key"] = setting.key;
    if (setting.has_value) json["value"] = setting.value;
    if (setting.line > 0) json["line"] = setting.line;
    return json;
  };
  nlohmann::ordered_json json;
  json["file"] = report.file;
  json["framework"] = report.framework;
  json["read"] = nlohmann::ordered_json::array();
  for (const Setting& setting : report.used) {
    json["read"].push_back(entry(setting));
  }
  json["ignored"] = nlohmann::ordered_json::array();
  for (const IgnoredSetting& ignored : report.ignored) {
    json["ignored"].push_back(entry(ignored.setting));
    json["ignored"].back()["reason"] = ignored.reason;
  }
  json["notes"] = report.notes;
  return json;
}

}  // namespace weir::plan
