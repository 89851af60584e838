// SPDX-License-Identifier: Apache-2.0
// Every option of every command as data. The parser and the help use the same
// table.
#ifndef WEIR_CLI_OPTIONS_OPTIONS_H_
#define WEIR_CLI_OPTIONS_OPTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/options/flags.h"

namespace weir::cli {

struct Option {
  std::string group;  // heading in the help
  // "--pp,--pipeline-model-parallel-size", with the preferred name first. A
  // name without dashes is a positional argument.
  std::string names;
  std::string value;  // placeholder of the value in the help; empty: a switch
  std::string help;
  std::string fallback;  // shown as the default
  // Sets the value ("true" or "false" for a switch). The error message is "is
  // x, expected y".
  std::function<absl::Status(const std::string&)> set;
  bool required = false;
  bool repeats = false;  // values are joined by commas
};

using Options = std::vector<Option>;

// Returns "--pp" for "--pp,--pipeline-model-parallel-size".
std::string FirstName(const Option& option);
std::vector<std::string> AllNames(const Option& option);

// The options of each command. `flags` must outlive them.
Options OptionsOfSimulate(Flags* flags);
Options OptionsOfExplain(Flags* flags);
Options OptionsOfCompare(Flags* flags);
Options OptionsOfTrainStudy(Flags* flags);
Options OptionsOfValidate(Flags* flags);
Options OptionsOfPlan(Flags* flags);
Options OptionsOfSweep(Flags* flags);
Options OptionsOfCollect(Flags* flags);
Options OptionsOfShow(Flags* flags);
Options OptionsOfTrace(Flags* flags);
Options OptionsOfList(Flags* flags);
Options OptionsOfScheduleList(Flags* flags);
Options OptionsOfScheduleShow(Flags* flags);
Options OptionsOfScheduleSemantics(Flags* flags);
Options OptionsOfScheduleLint(Flags* flags);
Options OptionsOfScheduleConvert(Flags* flags);
Options OptionsOfScheduleSynthesize(Flags* flags);
Options OptionsOfModelShow(Flags* flags);
Options OptionsOfClusterShow(Flags* flags);
Options OptionsOfScenarioShow(Flags* flags);
Options OptionsOfProfileShow(Flags* flags);
Options OptionsOfProfileDiff(Flags* flags);
Options OptionsOfProfileImport(Flags* flags);

// Returns only the options that define what is simulated. Their names without
// dashes are the columns of a table of runs.
Options OptionsOfScenario(ScenarioFlags* flags);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_OPTIONS_H_
