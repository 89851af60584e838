// SPDX-License-Identifier: Apache-2.0
// The commands of weir. Each takes its flags, prints, and returns the exit
// code. The result goes to standard output, everything else to standard error.
#ifndef WEIR_CLI_WEIR_COMMANDS_H_
#define WEIR_CLI_WEIR_COMMANDS_H_

#include <string>
#include <vector>

#include "cli/options/flags.h"

namespace weir::cli {

using Command = int(const Flags& flags);

Command RunSimulate;
Command RunExplain;
Command RunCompare;
Command RunValidate;
Command RunTrainStudy;
// Its schedules, unless --schedule names some.
inline constexpr char kStudiedSchedules[] =
    "gpipe,zb-h1,pipedream-2bw,pipedream,pipemare";
Command RunPlan;
Command RunGoodput;
Command RunEnergy;
Command RunValidateReplay;  // "validate --replay"
Command RunShow;            // shows a stored result
Command RunTrace;           // writes a trace of a stored result
Command RunImport;          // stores a step of a recorded run
Command RunJobs;            // several jobs on one cluster
Command RunSlack;
Command RunJitter;      // Monte Carlo over slow passes
Command RunStragglers;  // what-if analysis of a recorded run
Command RunReport;
Command RunDraw;
Command RunLive;  // serves a page on this machine
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
Command RunInit;
Command RunDoctor;
Command RunSelfTest;
Command RunSchema;
Command RunServe;  // answers requests of another program

// Returns the names that RunSchema takes.
std::vector<std::string> SchemaNames();

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_COMMANDS_H_
