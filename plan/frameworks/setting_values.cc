// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/setting_values.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weir::plan {

void ReportValue(const Setting& setting, absl::string_view expected,
                 Problems* problems) {
  // A string that looks like a value of another type.
  const bool quoted = setting.form == Setting::Form::kString &&
                      (expected == "true or false" ||
                       absl::StartsWith(expected, "a whole number") ||
                       absl::StartsWith(expected, "a number"));
  const char* quote = quoted ? "\"" : "";
  problems->AddAt(setting.line, setting.key,
                  absl::StrCat("is ", quote, setting.value, quote,
                               ", expected ", expected));
}

bool SwitchValue(const Setting& setting, bool otherwise, Problems* problems) {
  const std::string value = absl::AsciiStrToLower(setting.value);
  if (value == "true" || value == "false") return value == "true";
  ReportValue(setting, "true or false", problems);
  return otherwise;
}

uint32_t CountValue(const Setting& setting, uint32_t most, Problems* problems) {
  uint32_t count = 0;
  if (absl::SimpleAtoi(setting.value, &count) && count > 0 && count <= most) {
    return count;
  }
  ReportValue(setting, absl::StrCat("a whole number, 1 to ", most), problems);
  return 0;
}

void SettingValues::Add(const Setting& setting) {
  const std::string expected = table_.ExpectedInstead(setting);
  if (expected.empty()) {
    values_[setting.key] = setting;
    reported_.erase(setting.key);
    return;
  }
  ReportValue(setting, expected, &problems_);
  values_.erase(setting.key);
  reported_.insert(setting.key);
}

int SettingValues::LineOf(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? 0 : found->second.line;
}

std::string SettingValues::Text(const std::string& key,
                                const std::string& otherwise) const {
  const auto found = values_.find(key);
  return found == values_.end() ? otherwise : found->second.value;
}

bool SettingValues::Switch(const std::string& key, bool otherwise) const {
  return Text(key, otherwise ? "true" : "false") == "true";
}

int64_t SettingValues::Whole(const std::string& key, int64_t otherwise,
                             int64_t least) {
  const auto found = values_.find(key);
  if (found == values_.end()) return otherwise;
  int64_t number = 0;
  if (absl::SimpleAtoi(found->second.value, &number) &&
      ((number >= least && number <= kMaxSettingCount) ||
       (number == -1 && otherwise == -1))) {
    return number;
  }
  Report(key, absl::StrCat("a whole number from ", least, " to ",
                           kMaxSettingCount, otherwise == -1 ? ", or -1" : ""));
  return otherwise;
}

void SettingValues::Report(const std::string& key, absl::string_view expected) {
  if (!reported_.insert(key).second) return;
  const auto found = values_.find(key);
  if (found == values_.end()) {
    problems_.Add(key, absl::StrCat("is not given, expected ", expected));
  } else {
    ReportValue(found->second, expected, &problems_);
  }
}

}  // namespace weir::plan
