// SPDX-License-Identifier: Apache-2.0
// Reads values of settings. A value of another form is reported as a problem
// with line, key, value and what was expected.
#ifndef WEIR_PLAN_FRAMEWORKS_SETTING_VALUES_H_
#define WEIR_PLAN_FRAMEWORKS_SETTING_VALUES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "plan/frameworks/option_table.h"
#include "plan/frameworks/setting.h"

namespace weir::plan {

constexpr uint32_t kMaxSettingCount = 1000000;

// Reports "<key> is <value>, expected <expected>".
void ReportValue(const Setting& setting, absl::string_view expected,
                 Problems* problems);

// Returns a truth value in any case ("True"), or `otherwise`.
bool SwitchValue(const Setting& setting, bool otherwise, Problems* problems);

// Returns a whole number from 1 to `most`, or 0.
uint32_t CountValue(const Setting& setting, uint32_t most, Problems* problems);

// The settings of a file that are read, by key.
class SettingValues {
 public:
  // `table` has their types. Both must outlive this object.
  SettingValues(const OptionTable& table, Problems* problems)
      : table_(table), problems_(*problems) {}

  // Adds a setting, or reports it if its value has not the type of the table.
  // Later settings replace earlier ones with the same key.
  void Add(const Setting& setting);

  bool Has(const std::string& key) const { return values_.contains(key); }
  int LineOf(const std::string& key) const;  // 0: not given
  std::string Text(const std::string& key, const std::string& otherwise) const;
  bool Switch(const std::string& key, bool otherwise) const;

  // Returns a whole number from `least` to 1000000, or `otherwise` if the key
  // is not given or reported; -1 is allowed if `otherwise` is -1.
  int64_t Whole(const std::string& key, int64_t otherwise, int64_t least = 1);

  // Reports that the value of `key`, or "not given", is not what was expected;
  // once for each key.
  void Report(const std::string& key, absl::string_view expected);

  bool IsReported(const std::string& key) const {
    return reported_.contains(key);
  }

  // Treats the key as reported, since another problem is its cause.
  void Suppress(const std::string& key) { reported_.insert(key); }

 private:
  const OptionTable& table_;
  Problems& problems_;
  std::map<std::string, Setting> values_;
  std::set<std::string> reported_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_SETTING_VALUES_H_
