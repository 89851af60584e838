// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/import_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/frameworks/setting_values.h"

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

// Returns "checkpoints (--save, --load)" for each reason, without unknown
// settings.
std::vector<std::string> GroupsOfIgnored(const ImportReport& report) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const IgnoredSetting& ignored : report.ignored) {
    if (ignored.is_unknown) continue;
    std::vector<std::string>& names = by_reason[ignored.reason];
    if (std::find(names.begin(), names.end(), ignored.setting.key) ==
        names.end()) {
      names.push_back(ignored.setting.key);
    }
  }
  std::vector<std::string> groups;
  for (auto& [reason, names] : by_reason) {
    const size_t num_more =
        names.size() > kMaxShown ? names.size() - kMaxShown : 0;
    names.resize(names.size() - num_more);
    groups.push_back(absl::StrCat(
        reason, " (", absl::StrJoin(names, ", "),
        num_more > 0 ? absl::StrCat(", ", num_more, " more") : "", ")"));
  }
  return groups;
}

}  // namespace

ImportReport ReportFor(const std::string& file, const OptionTable& table) {
  ImportReport report;
  report.file = file;
  report.framework =
      absl::StrCat(table.table().framework(), " ", table.table().version());
  return report;
}

void SettingSorter::Ignore(Setting setting, const std::string& reason,
                           bool is_unknown) {
  setting.key = prefix_ + setting.key;
  report_.ignored.push_back({std::move(setting), reason, is_unknown});
}

void SettingSorter::ReportUnsupported(const Setting& setting,
                                      const OptionGroup& group) {
  problems_.AddAt(
      setting.line, prefix_ + setting.key,
      absl::StrCat(
          setting.has_value ? absl::StrCat("is ", setting.value, ", which ")
                            : "",
          "is not simulated (", group.subject(),
          "): remove it, or predict the run without it by --leave-out ",
          setting.key));
}

bool SettingSorter::IsRead(const Setting& setting) {
  if (left_out_.contains(setting.key)) {
    Ignore(setting, "left out as requested");
    return false;
  }
  if (table_.IsSection(setting.key)) {
    if (IsOff(setting)) {
      Ignore(setting, "turned off");
    } else {
      ReportValue(setting, "a section with settings", &problems_);
    }
    return false;
  }
  if (const std::string meant = table_.Resembled(setting.key); !meant.empty()) {
    misspelled_.insert(meant);
    problems_.AddAt(
        setting.line, prefix_ + setting.key,
        absl::StrCat("is unknown; did you mean ", prefix_, meant,
                     "? (--leave-out ", setting.key, " ignores it)"));
    return false;
  }
  const OptionGroup* group = table_.Find(setting.key);
  if (group == nullptr) {
    Ignore(setting,
           absl::StrCat("not in weir's table of ", table_.table().framework(),
                        " ", table_.table().version()),
           /*is_unknown=*/true);
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
    ReportUnsupported(setting, *group);
  }
  return false;
}

std::string SummaryOf(const ImportReport& report) {
  std::string text =
      absl::StrCat(report.file, ": read ", report.used.size(), " of ",
                   report.used.size() + report.ignored.size(), " settings of ",
                   report.framework, "\n");
  const auto add = [&text](absl::string_view label, absl::string_view what) {
    absl::StrAppend(&text, "  ", label, ": ", what, "\n");
  };
  const std::vector<std::string> groups = GroupsOfIgnored(report);
  if (!groups.empty()) add("ignored", absl::StrJoin(groups, "; "));
  for (const std::string& note : report.notes) add("assumed", note);
  for (const std::string& what : report.missing) add("missing", what);
  return text;
}

std::string UnknownSettingsOf(const ImportReport& report) {
  std::vector<std::string> names;
  for (const IgnoredSetting& ignored : report.ignored) {
    if (!ignored.is_unknown) continue;
    names.push_back(ignored.setting.line > 0
                        ? absl::StrCat(ignored.setting.key, " (line ",
                                       ignored.setting.line, ")")
                        : ignored.setting.key);
  }
  if (names.empty()) return "";
  return absl::StrCat(report.file, ": ignored unknown settings, which may ",
                      "change the run: ", absl::StrJoin(names, ", "));
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
  for (const std::string& what : report.missing) {
    lines.push_back(absl::StrCat("missing: ", what));
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
    if (ignored.is_unknown) json["ignored"].back()["unknown"] = true;
  }
  json["notes"] = report.notes;
  json["missing"] = report.missing;
  return json;
}

}  // namespace weir::plan
