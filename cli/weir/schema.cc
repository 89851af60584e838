// SPDX-License-Identifier: Apache-2.0
// Prints the JSON Schemas of inputs and outputs, and descriptions of tools.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/text_table.h"
#include "cli/options/messages.h"
#include "cli/schema/schemas.h"
#include "cli/schema/tools.h"
#include "cli/weir/commands.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {
namespace {

struct NamedStyle {
  const char* name;
  const char* summary;
  ToolStyle style;
};

constexpr NamedStyle kStyles[] = {
    {"tools", "tools for agents: Model Context Protocol", ToolStyle::kMcp},
    {"tools-openai", "the same as functions", ToolStyle::kOpenAi},
    {"tools-anthropic", "the same with input_schema", ToolStyle::kAnthropic}};

std::string NamesTable() {
  TextTable table;
  table.header = {"name", "describes"};
  table.left = {true, true};
  for (const NamedSchema& schema : AllSchemas()) {
    table.rows.push_back(
        {std::string(schema.name), std::string(schema.summary)});
  }
  for (const NamedStyle& style : kStyles) {
    table.rows.push_back({style.name, style.summary});
  }
  return PrintTable(table);
}

absl::StatusOr<std::string> TextOf(const std::string& name) {
  if (name.empty()) return NamesTable();
  for (const NamedStyle& style : kStyles) {
    if (name != style.name) continue;
    CommandLine line;
    return DumpJson(ToolsOf(*MakeWeirApp(&line), style.style), 2) + "\n";
  }
  const std::vector<std::string> known = SchemaNames();
  if (!absl::c_linear_search(known, name)) {
    return absl::NotFoundError(
        absl::StrCat("weir schema: NAME is ", EscapeLine(name), ", expected ",
                     absl::StrJoin(known, ", "), DidYouMean(name, known)));
  }
  ASSIGN_OR_RETURN(const nlohmann::ordered_json schema, SchemaOf(name));
  return DumpJson(schema, 2) + "\n";
}

}  // namespace

std::vector<std::string> SchemaNames() {
  std::vector<std::string> names;
  for (const NamedSchema& schema : AllSchemas()) {
    names.emplace_back(schema.name);
  }
  for (const NamedStyle& style : kStyles) names.emplace_back(style.name);
  return names;
}

int RunSchema(const Flags& flags) {
  const absl::StatusOr<std::string> text = TextOf(flags.name);
  if (!text.ok()) return PrintError(text.status(), flags.output);
  const absl::Status printed = PrintResult(*text);
  return printed.ok() ? kExitOk : PrintError(printed, flags.output);
}

}  // namespace weir::cli
