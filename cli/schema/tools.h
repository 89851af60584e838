// SPDX-License-Identifier: Apache-2.0
// Commands of weir as functions that other programs call: the methods of weir
// serve, and tools of AI agents. Names and types of parameters follow from the
// definitions of the options.
#ifndef WEIR_CLI_SCHEMA_TOOLS_H_
#define WEIR_CLI_SCHEMA_TOOLS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weir::cli {

// A method, and the command that executes it with --format json.
struct Method {
  absl::string_view name;     // "simulate"
  absl::string_view command;  // "simulate", "model show"
  // Parameter that is the command's positional argument; empty: it has none.
  absl::string_view positional;
  absl::string_view summary;  // what it returns, for agents
};

const std::vector<Method>& AllMethods();

// Names of presets.
struct Listing {
  absl::string_view name;    // "models"
  absl::string_view folder;  // of the presets
};

const std::vector<Listing>& AllListings();
// Returns null for an unknown name.
const Method* FindMethod(absl::string_view name);

// Returns the command. Requires: `app` is that of weir.
const CLI::App& CommandOf(const CLI::App& app, const Method& method);

// Returns the options that are parameters: those that select what is computed,
// not what is written where.
std::vector<const CLI::Option*> ParametersOf(const CLI::App& command);

// Returns "tp" for --tp, "recompute_modules" for --recompute-modules.
std::string ParameterName(const CLI::Option& option);

// Returns the JSON Schema of a method's parameters.
nlohmann::ordered_json ParameterSchema(const CLI::App& app,
                                       const Method& method);

// How tools are written down. kMcp: Model Context Protocol (tools/list);
// kOpenAi: "functions" with "parameters"; kAnthropic: "input_schema".
enum class ToolStyle { kMcp, kOpenAi, kAnthropic };

// Returns a list of tools, named weir_simulate, ...
nlohmann::ordered_json ToolsOf(const CLI::App& app, ToolStyle style);

// Returns the arguments of weir for a call: {"simulate", "llama-3-70b-64-h100",
// "--tp=4", "--format=json"}. Values may be strings, numbers, booleans and
// lists of them; a scenario that is an object is written to a file by the
// caller and must be its path here. Returns InvalidArgument for every parameter
// that is unknown (with the most similar one) or has another type.
absl::StatusOr<std::vector<std::string>> ArgumentsOf(
    const CLI::App& app, const Method& method,
    const nlohmann::ordered_json& parameters);

}  // namespace weir::cli

#endif  // WEIR_CLI_SCHEMA_TOOLS_H_
