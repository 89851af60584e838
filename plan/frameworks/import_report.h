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
  bool is_unknown = false;
};

// A parameter that the reader sets in Scenario.set_figures.
struct ImportedFigure {
  std::string setting;  // "runtime.unfused_softmax=true"
  std::string source;   // "--no-masked-softmax-fusion"
};

struct ImportReport {
  std::string file;
  std::string framework;  // with its version
  std::vector<Setting> used;
  std::vector<IgnoredSetting> ignored;
  // Defaults of the framework that were assumed, and effects that are only
  // approximated.
  std::vector<std::string> notes;
  // What the file does not describe: "the model: give --model".
  std::vector<std::string> missing;
  std::vector<ImportedFigure> figures;
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
  // used. Otherwise it is ignored for a reason, or a problem: if it is active
  // and unsupported, has a value of another type than the table, or is unknown
  // but resembles an option that changes the run.
  bool IsRead(const Setting& setting);

  // Returns the options that misspelled settings resemble.
  const std::set<std::string>& misspelled() const { return misspelled_; }

 private:
  void Ignore(Setting setting, const std::string& reason,
              bool is_unknown = false);
  void ReportUnsupported(const Setting& setting, const OptionGroup& group);

  const OptionTable& table_;
  const std::set<std::string>& left_out_;
  const std::string prefix_;
  ImportReport& report_;
  Problems& problems_;
  std::set<std::string> misspelled_;
};

// Returns an empty report on a file with settings of the table.
ImportReport ReportFor(const std::string& file, const OptionTable& table);

// Returns a line with the numbers of settings, and indented ones: those
// ignored, grouped by reason, what is assumed and what is missing.
std::string SummaryOf(const ImportReport& report);

// Returns a line that names the unknown settings; empty if there are none.
std::string UnknownSettingsOf(const ImportReport& report);

// Returns one line per setting and note.
std::vector<std::string> LinesOf(const ImportReport& report);

nlohmann::ordered_json JsonOf(const ImportReport& report);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_IMPORT_REPORT_H_
