// SPDX-License-Identifier: Apache-2.0
#include "cli/schema/tools.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/json_text.h"
#include "base/problems.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "cli/options/add_option.h"
#include "cli/options/command_tree.h"
#include "cli/options/program.h"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

// Options about files and the form of the output.
constexpr absl::string_view kNotParameters[] = {
    "--columns",  "--emit",  "--emit-to", "--explain", "--force",
    "--format",   "--out",   "--ranks",   "--replica", "--report",
    "--timeline", "--trace", "--wide"};

std::string WithUnderscores(absl::string_view name) {
  return absl::StrReplaceAll(name, {{"-", "_"}});
}

// Returns the first name with two dashes, without them.
std::string LongName(const CLI::Option& option) {
  const std::vector<std::string>& names = option.get_lnames();
  return names.empty() ? "" : names.front();
}

Json TypeOf(const CLI::Option& option) {
  const std::string value = option.get_type_name();
  if (!TakesValue(option)) return {{"type", "boolean"}};
  if (const auto choices = ChoicesOf(option); !choices.empty()) {
    return {{"enum", choices}};
  }
  if (value == "N") return {{"type", "integer"}, {"minimum", 0}};
  if (absl::StrContains(value, ',')) {
    return {{"type", {"string", "number", "array"}},
            {"items", {{"type", {"string", "number"}}}}};
  }
  return {{"type", {"string", "number"}}};
}

std::string DescriptionOf(const CLI::Option& option) {
  const std::string value = option.get_type_name();
  const std::string standard = option.get_default_str();
  return absl::StrCat(
      option.get_description(),
      !value.empty() && value != "N" && ChoicesOf(option).empty()
          ? absl::StrCat(" (", value, ")")
          : "",
      standard.empty() ? "" : absl::StrCat(" [default: ", standard, "]"));
}

// Returns the value as on a command line, or nothing for another type.
std::optional<std::string> ValueText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  // Some clients write all numbers with a fraction: 8.0.
  if (const double number = value.is_number() ? value.get<double>() : 0.5;
      number == std::trunc(number) && std::abs(number) < 1e15) {
    return absl::StrCat(static_cast<int64_t>(number));
  }
  if (value.is_number()) return DumpJson(value);
  if (!value.is_array() || value.empty()) return std::nullopt;
  std::vector<std::string> parts;
  for (const Json& part : value) {
    if (part.is_array()) return std::nullopt;
    const auto text = ValueText(part);
    if (!text.has_value()) return std::nullopt;
    parts.push_back(*text);
  }
  return absl::StrJoin(parts, ",");
}

// Returns the option that a parameter names by any of its long names.
const CLI::Option* FindParameter(const std::vector<const CLI::Option*>& options,
                                 absl::string_view name) {
  const std::string wanted = WithUnderscores(name);
  for (const CLI::Option* option : options) {
    for (const std::string& known : option->get_lnames()) {
      if (WithUnderscores(known) == wanted) return option;
    }
  }
  return nullptr;
}

}  // namespace

const std::vector<Method>& AllMethods() {
  static const auto& methods = *new std::vector<Method>{
      {"simulate", "simulate", "scenario",
       "Returns step time with its interval, memory of every GPU and what "
       "limits the step (weir schema result). With method \"fast\", returns "
       "the same time and memory much sooner, without details (weir schema "
       "estimate)."},
      {"compare", "compare", "scenario",
       "Returns one result per schedule (weir schema compare)."},
      {"plan", "plan", "scenario",
       "Returns the best layouts that fit in memory, with a bound on what any "
       "layout could reach (weir schema plan). Give time_limit in seconds."},
      {"explain", "explain", "scenario",
       "Returns the parameters on which the predicted time depends most."},
      {"goodput", "goodput", "scenario",
       "Returns days and cost of a long run with failures and checkpoints."},
      {"model", "model show", "name",
       "Returns parameters, FLOP and memory of the layers of a model."},
      {"cluster", "cluster show", "name",
       "Returns nodes, GPUs and links of a cluster."},
      {"schedule", "schedule show", "name",
       "Returns the order of passes of a schedule."},
      {"schedules", "schedule list", "", "Returns all schedules."}};
  return methods;
}

const Method* FindMethod(absl::string_view name) {
  const auto found = absl::c_find_if(
      AllMethods(), [&](const Method& method) { return method.name == name; });
  return found == AllMethods().end() ? nullptr : &*found;
}

const CLI::App& CommandOf(const CLI::App& app, const Method& method) {
  for (const CLI::App* command : AllCommands(app)) {
    if (NameInProgram(*command) == method.command) return *command;
  }
  return app;
}

std::vector<const CLI::Option*> ParametersOf(const CLI::App& command) {
  std::vector<const CLI::Option*> parameters;
  for (const CLI::Option* option : OptionsOf(command)) {
    const bool excluded =
        option->get_group() == kOptionsOfAllCommands ||
        absl::c_linear_search(kNotParameters,
                              absl::StrCat("--", LongName(*option)));
    if (!excluded) parameters.push_back(option);
  }
  return parameters;
}

std::string ParameterName(const CLI::Option& option) {
  return WithUnderscores(LongName(option));
}

Json ParameterSchema(const CLI::App& app, const Method& method) {
  const CLI::App& command = CommandOf(app, method);
  Json properties = Json::object();
  Json schema = {{"type", "object"}};
  for (const CLI::Option* option : PositionalsOf(command)) {
    const bool is_scenario = method.positional == "scenario";
    Json property = {{"type", "string"}};
    if (is_scenario) property = {{"type", {"string", "object"}}};
    property["description"] = absl::StrCat(
        option->get_description(),
        is_scenario ? "; or an object as weir schema scenario describes" : "");
    properties[std::string(method.positional)] = std::move(property);
    if (option->get_required()) {
      schema["required"] = {std::string(method.positional)};
    }
  }
  for (const CLI::Option* option : ParametersOf(command)) {
    Json property = TypeOf(*option);
    property["description"] = DescriptionOf(*option);
    properties[ParameterName(*option)] = std::move(property);
  }
  schema["properties"] = std::move(properties);
  schema["additionalProperties"] = false;
  return schema;
}

const std::vector<Listing>& AllListings() {
  static const auto& listings =
      *new std::vector<Listing>{{"models", "models/presets"},
                                {"clusters", "scenarios/cluster/presets"},
                                {"scenarios", "scenarios/presets"}};
  return listings;
}

namespace {

// Removes the descriptions of parameters that the first method describes in the
// same way, since agents read all tools at once. Returns a sentence that says
// so, or "".
std::string LeaveOutDescribed(const Json& first, Json* schema) {
  bool is_complete = true;
  for (auto& [name, property] : (*schema)["properties"].items()) {
    if (first["properties"].value(name, Json()) != property) continue;
    property.erase("description");
    is_complete = false;
  }
  if (is_complete) return "";
  return absl::StrCat(" Parameters without a description are those of weir_",
                      AllMethods().front().name, ".");
}

}  // namespace

Json ToolsOf(const CLI::App& app, ToolStyle style) {
  Json tools = Json::array();
  const auto add = [&](absl::string_view method, std::string description,
                       Json schema) {
    const std::string name = absl::StrCat("weir_", method);
    switch (style) {
      case ToolStyle::kMcp:
        tools.push_back({{"name", name},
                         {"description", std::move(description)},
                         {"inputSchema", std::move(schema)}});
        break;
      case ToolStyle::kOpenAi:
        tools.push_back({{"type", "function"},
                         {"function",
                          {{"name", name},
                           {"description", std::move(description)},
                           {"parameters", std::move(schema)}}}});
        break;
      case ToolStyle::kAnthropic:
        tools.push_back({{"name", name},
                         {"description", std::move(description)},
                         {"input_schema", std::move(schema)}});
        break;
    }
  };
  const Json first = ParameterSchema(app, AllMethods().front());
  for (const Method& method : AllMethods()) {
    Json schema = ParameterSchema(app, method);
    std::string description = absl::StrCat(
        CommandOf(app, method).get_description(), " ", method.summary);
    if (style == ToolStyle::kMcp && method.name != AllMethods().front().name) {
      absl::StrAppend(&description, LeaveOutDescribed(first, &schema));
    }
    add(method.name, std::move(description), std::move(schema));
  }
  for (const Listing& listing : AllListings()) {
    add(listing.name,
        absl::StrCat("Returns the names of preset ", listing.name, "."),
        {{"type", "object"},
         {"properties", Json::object()},
         {"additionalProperties", false}});
  }
  return tools;
}

absl::StatusOr<std::vector<std::string>> ArgumentsOf(const CLI::App& app,
                                                     const Method& method,
                                                     const Json& parameters) {
  const CLI::App& command = CommandOf(app, method);
  const std::vector<const CLI::Option*> options = ParametersOf(command);
  std::vector<std::string> known;
  for (const CLI::Option* option : options) {
    known.push_back(ParameterName(*option));
  }
  if (!method.positional.empty()) known.emplace_back(method.positional);

  Problems problems(absl::StrCat(method.name));
  std::vector<std::string> arguments = {}, positional = {};
  for (const auto& [name, value] : parameters.items()) {
    const std::optional<std::string> text = ValueText(value);
    const bool is_positional = name == method.positional;
    const CLI::Option* option =
        is_positional ? nullptr : FindParameter(options, name);
    if (!is_positional && option == nullptr) {
      problems.Add(name, absl::StrCat("is unknown, expected a parameter of ",
                                      method.name, DidYouMean(name, known)));
    } else if (!text.has_value() || (is_positional && !value.is_string())) {
      problems.Add(
          name,
          absl::StrCat("is of type ", value.type_name(), ", expected ",
                       !is_positional ? "a string, a number, a boolean or "
                                        "a list of them"
                       : name == "scenario" ? "a string or an object"
                                            : "a string"));
    } else if (text->empty() || absl::StrContains(*text, '\0')) {
      problems.Add(
          name, absl::StrCat(text->empty() ? "is empty" : "has a character NUL",
                             ", expected a value"));
    } else if (is_positional) {
      positional.push_back(*text);
    } else {
      arguments.push_back(absl::StrCat("--", LongName(*option), "=", *text));
    }
  }
  RETURN_IF_ERROR(problems.ToStatus());
  std::vector<std::string> words = {};
  for (absl::string_view word : absl::StrSplit(method.command, ' ')) {
    words.emplace_back(word);
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back("--format=json");
  if (!positional.empty()) {
    words.push_back("--");
    words.insert(words.end(), positional.begin(), positional.end());
  }
  return words;
}

}  // namespace weir::cli
