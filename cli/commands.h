// SPDX-License-Identifier: Apache-2.0
// Every command of weir: takes its flags, prints, returns the exit code. The
// result goes to standard output, everything else to standard error.
#ifndef WEIR_CLI_COMMANDS_H_
#define WEIR_CLI_COMMANDS_H_

#include "cli/flags.h"

namespace weir {

using Command = int(const Flags& flags);

Command RunSimulate;
Command RunExplain;
Command RunCompare;
Command RunValidate;
Command RunTrainStudy;
Command RunPlan;
Command RunValidateReplay;  // what "validate --replay" is
Command RunShow;            // an old result again
Command RunTrace;           // an old result as a trace
Command RunScheduleList;
Command RunScheduleShow;
Command RunScheduleSemantics;
Command RunScheduleLint;
Command RunScheduleConvert;
Command RunScheduleSynthesize;
Command RunModelList;
Command RunModelShow;
Command RunClusterList;
Command RunClusterShow;
Command RunScenarioList;
Command RunScenarioShow;
Command RunProfileList;
Command RunProfileShow;
Command RunProfileDiff;
Command RunProfileImport;
Command RunSweepCommand;
Command RunCollect;
Command RunDoctor;

}  // namespace weir

#endif  // WEIR_CLI_COMMANDS_H_
