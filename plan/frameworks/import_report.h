// SPDX-License-Identifier: Apache-2.0
// What became of the settings of an imported file.
#ifndef WEIR_PLAN_FRAMEWORKS_IMPORT_REPORT_H_
#define WEIR_PLAN_FRAMEWORKS_IMPORT_REPORT_H_

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/problems.h"
#include "plan/frameworks/option_table.h"
#include "plan/frameworks/setting.h"

namespace weir::plan {

struct IgnoredSetting {
  Setting setting;
  std::string reason;  // "checkpoints"
};

struct ImportReport {
  std::string file;
  std::string framework;  // with its version
  std::vector<Setting> used;
  std::vector<IgnoredSetting> ignored;
  // Defaults of the framework that were assumed, and effects that are only
  // approximated.
  std::vector<std::string> notes;
};

// Decides which settings are read, by a framework's table.
class SettingSorter {
 public:
  // `left_out`: settings that are ignored as if they were not in the file.
  // `prefix`: shown before the name of a setting, "--" for arguments. All
  // references and pointers must outlive the sorter.
  SettingSorter(const OptionTable& table, const std::set<std::string>& left_out,
                const std::string& prefix, ImportReport* report,
                Problems* problems)
      : table_(table),
        left_out_(left_out),
        prefix_(prefix),
        report_(*report),
        problems_(*problems) {}

  // Returns true if the setting is to be read, which the report then counts as
  // used. Otherwise it is ignored for a reason, or, if it is active and
  // unsupported, a problem.
  bool IsRead(const Setting& setting);

 private:
  void Ignore(Setting setting, const std::string& reason);

  const OptionTable& table_;
  const std::set<std::string>& left_out_;
  const std::string prefix_;
  ImportReport& report_;
  Problems& problems_;
};

// Returns one line: numbers of settings, ignored ones grouped by reason, and
// the notes.
std::string SummaryOf(const ImportReport& report);

// Returns one line per setting and note.
std::vector<std::string> LinesOf(const ImportReport& report);

nlohmann::ordered_json JsonOf(const ImportReport& report);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_IMPORT_REPORT_H_
