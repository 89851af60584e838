// SPDX-License-Identifier: Apache-2.0
// The table of a framework's options.
#ifndef WEIR_PLAN_FRAMEWORKS_OPTION_TABLE_H_
#define WEIR_PLAN_FRAMEWORKS_OPTION_TABLE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "plan/frameworks/framework_table.pb.h"
#include "plan/frameworks/setting.h"

namespace weir::plan {

class OptionTable {
 public:
  // Returns the table "plan/frameworks/tables/<name>.textproto". Requires: it
  // exists.
  static const OptionTable& Of(absl::string_view name);

  explicit OptionTable(FrameworkTable table);

  const FrameworkTable& table() const { return table_; }

  // Returns the group of an option: that of its exact name, else that of the
  // longest prefix; nullptr if there is none.
  const OptionGroup* Find(absl::string_view name) const;

  // Returns true if `name` contains options that are read ("bf16" contains
  // "bf16.enabled") and is none itself.
  bool IsSection(absl::string_view name) const;

  // Returns the option that an unknown name resembles, by letters that differ
  // or words that are missing, if that option is read or not supported; empty
  // if the name is known, or most similar to an option without effect.
  std::string Resembled(absl::string_view name) const;

  // Returns what the table expects instead of the setting's value, such as
  // "true or false"; empty if the value has the right type, or the option or
  // its type is unknown.
  std::string ExpectedInstead(const Setting& setting) const;

  // Returns why the framework would not accept these settings: unknown and
  // removed options, values of another type or choice, and required options
  // that are missing. Empty: it accepts them.
  std::vector<std::string> Refusals(const std::vector<Setting>& settings) const;

 private:
  FrameworkTable table_;
  std::map<std::string, const OptionGroup*, std::less<>> exact_, prefixes_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_OPTION_TABLE_H_
