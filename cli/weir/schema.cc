// SPDX-License-Identifier: Apache-2.0
// Prints the JSON Schemas of inputs and outputs, and descriptions of tools.
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"
#include "base/text_table.h"
#include "cli/options/messages.h"
#include "cli/schema/schemas.h"
#include "cli/schema/tools.h"
#include "cli/weir/commands.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {
namespace {

std::optional<ToolStyle> StyleOf(const std::string& name) {
  if (name == "tools") return ToolStyle::kMcp;
  if (name == "tools-openai") return ToolStyle::kOpenAi;
  if (name == "tools-anthropic") return ToolStyle::kAnthropic;
  return std::nullopt;
}

std::string NamesTable() {
  TextTable table;
  table.header = {"name", "describes"};
  table.left = {true, true};
  for (const NamedSchema& schema : AllSchemas()) {
    table.rows.push_back(
        {std::string(schema.name), std::string(schema.summary)});
  }
  table.rows.push_back({"tools", "tools for agents: Model Context Protocol"});
  table.rows.push_back({"tools-openai", "the same as functions"});
  table.rows.push_back({"tools-anthropic", "the same with input_schema"});
  return PrintTable(table);
}

absl::StatusOr<std::string> TextOf(const std::string& name) {
  if (name.empty()) return NamesTable();
  if (const std::optional<ToolStyle> style = StyleOf(name)) {
    CommandLine line;
    return DumpJson(ToolsOf(*MakeWeirApp(&line), *style), 2) + "\n";
  }
  const absl::StatusOr<nlohmann::ordered_json> schema = SchemaOf(name);
  if (!schema.ok()) return schema.status();
  return DumpJson(*schema, 2) + "\n";
}

}  // namespace

int RunSchema(const Flags& flags) {
  const absl::StatusOr<std::string> text = TextOf(flags.name);
  if (!text.ok()) return PrintError(text.status(), flags.output);
  const absl::Status printed = PrintResult(*text);
  return printed.ok() ? kExitOk : PrintError(printed, flags.output);
}

}  // namespace weir::cli
