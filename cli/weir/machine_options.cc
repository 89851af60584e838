// SPDX-License-Identifier: Apache-2.0
// "schema" and "serve".
#include "absl/strings/str_join.h"
#include "cli/options/add_option.h"
#include "cli/weir/commands.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {

void AddMachineCommands(CLI::App* app, CommandLine* line) {
  CLI::App* schema = AddWeirCommand(
      app, "schema",
      "Prints JSON Schemas of inputs and outputs, and descriptions of tools.",
      {"schema", "schema result", "schema tools"}, RunSchema, line);
  AddText(schema, "NAME", absl::StrJoin(SchemaNames(), "|"),
          "schema to print; without: a list of them", &line->flags.name);
  CLI::App* serve = AddWeirCommand(
      app, "serve",
      "Answers requests of another program (JSON-RPC 2.0, one per line).",
      {"serve --stdio"}, RunServe, line);
  AddSwitch(serve, "--stdio", "read requests from standard input", [](bool) {
  })->required();
}

}  // namespace weir::cli
