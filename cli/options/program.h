// SPDX-License-Identifier: Apache-2.0
// A program with commands, on top of CLI11: errors of a command line are
// reported together, with suggestions; help is printed wherever it is asked
// for.
#ifndef WEIR_CLI_OPTIONS_PROGRAM_H_
#define WEIR_CLI_OPTIONS_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace CLI {
class App;
class Formatter;
}  // namespace CLI

namespace weir::cli {

// The group of options of a program that its commands take, too.
inline constexpr char kOptionsOfAllCommands[] = "Options of all commands";

std::unique_ptr<CLI::App> MakeProgram(const std::string& name,
                                      const std::string& description);

// Adds a command of `parent`: the program, or a group of commands. Examples
// omit the program's name.
CLI::App* AddCommand(CLI::App* parent, const std::string& name,
                     const std::string& summary,
                     const std::vector<std::string>& examples = {});

// Returns "weir schedule show".
std::string FullName(const CLI::App& command);

// Returns the help or version that is asked for; if it is empty, all options of
// the command are set and its callback has been called. Returns InvalidArgument
// with every bad word and the nearest valid one.
absl::StatusOr<std::string> ParseArguments(int argc, const char* const* argv,
                                           CLI::App* program);

// Returns CLI11's formatter with wrapped lines and with defaults in brackets:
//   --dp,--data-parallel-size N
//                         data-parallel size (replicas of the pipeline) [1]
std::shared_ptr<CLI::Formatter> MakeHelpFormatter();

}  // namespace weir::cli

#endif  // WEIR_CLI_OPTIONS_PROGRAM_H_
