// SPDX-License-Identifier: Apache-2.0
// Options that several commands have.
#ifndef WEIR_CLI_OPTIONS_SHARED_OPTIONS_H_
#define WEIR_CLI_OPTIONS_SHARED_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/options/flags.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weir::cli {

// Requires of all functions: the flags outlive `app`.

// Adds the scenario as an optional positional argument.
void AddScenarioName(CLI::App* app, const std::string& help,
                     ScenarioFlags* flags);
// Adds the required positional argument `name`.
void AddName(CLI::App* app, const std::string& name, const std::string& help,
             std::string* target);
void AddJobs(CLI::App* app, const std::string& group, const std::string& help,
             uint32_t* num_jobs);
void AddTolerance(CLI::App* app, const std::string& group,
                  const std::string& help, double* tolerance);
void AddMethod(CLI::App* app, const std::string& group, const std::string& help,
               bool* fast);

// Parses a number of tokens: "300e9", "1T". Returns InvalidArgument otherwise.
absl::StatusOr<double> ParseTokens(const std::string& text);

// Adds --flops.
void AddFlops(CLI::App* app, std::string* formula);
// Adds --format and --wide.
void AddFormat(CLI::App* app, bool csv, OutputFlags* output);
// Adds --format with textproto, for commands that show an input file.
void AddInputFormat(CLI::App* app, OutputFlags* output);
// Adds --columns, with the names of PrintTable's columns; empty: any name.
void AddColumns(CLI::App* app, const std::vector<std::string>& columns,
                OutputFlags* output);
// Adds `option`, the path of a report; help names its contents.
CLI::Option* AddReport(CLI::App* app, const std::string& option,
                       const std::string& contents, std::string* path);
// Adds --replica and --ranks.
void AddTraceSelection(CLI::App* app, results::GpuSelection* selection);
// Adds --force, for commands that write files.
void AddForce(CLI::App* app, bool* force);
void AddQuiet(CLI::App* app, bool* quiet);
void AddColor(CLI::App* app, OutputFlags* output);
// Adds --message-format; calls `target` with true for JSON.
void AddMessageFormat(CLI::App* app, const std::function<void(bool)>& target);

// Adds the options of a run that "weir-calibrate replay" also has, for one
// schedule or with `several` for several.
void AddRun(CLI::App* app, bool several, Flags* flags);
// Adds the other options that "weir simulate" and "weir compare" have: what is
// computed from a predicted step.
void AddPrediction(CLI::App* app, bool several, Flags* flags);
// Adds the options of "weir simulate".
void AddSimulate(CLI::App* app, Flags* flags);

// Adds --emit: a list of frameworks for which files are written.
// `otherwise`: shown as the default.
void AddEmit(CLI::App* app, const std::string& help,
             const std::string& otherwise, OutputFlags* output);

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_SHARED_OPTIONS_H_
