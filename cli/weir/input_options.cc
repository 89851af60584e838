// SPDX-License-Identifier: Apache-2.0
// "model", "cluster", "scenario", "doctor" and "self-test".
#include "cli/options/add_option.h"
#include "cli/options/cluster_options.h"
#include "cli/options/import_options.h"
#include "cli/options/layer_options.h"
#include "cli/options/program.h"
#include "cli/options/scenario_options.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {

void AddInputCommands(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* model = AddCommand(app, "model", "Lists and shows models.");
  AddListCommand(model, "Lists the model presets.", RunModelList, line);
  CLI::App* show = AddWeirCommand(
      model, "show", "Shows a model: parameters, FLOP and bytes of each layer.",
      {"model show gpt2", "model show llama-2-70b --mbs 4 --tp 8"},
      RunModelShow, line);
  AddName(show, "MODEL",
          "preset, or file: Hugging Face config.json, textproto or PipeDream "
          "profile graph",
          &flags->name);
  AddLayerWork(show, &flags->scenario);
  AddInputFormat(show, &flags->output);

  CLI::App* cluster = AddCommand(app, "cluster", "Lists and shows clusters.");
  AddListCommand(cluster, "Lists the cluster presets.", RunClusterList, line);
  show = AddWeirCommand(cluster, "show",
                        "Shows a cluster: nodes, GPUs and every kind of link.",
                        {"cluster show p3-16xlarge",
                         "cluster show dgx-h100 --nodes 4 --format textproto",
                         "cluster show dgx-h100 --nodes 512 "
                         "--oversubscription 2"},
                        RunClusterShow, line);
  AddName(show, "CLUSTER", "preset or file", &flags->name);
  AddNodes(show, &flags->scenario);
  AddNetwork(show, &flags->scenario);
  AddInputFormat(show, &flags->output);

  CLI::App* scenario =
      AddCommand(app, "scenario", "Lists and shows scenarios.");
  AddListCommand(scenario, "Lists the scenario presets.", RunScenarioList,
                 line);
  show = AddWeirCommand(
      scenario, "show",
      "Prints a scenario with all defaults filled in, as a file to edit.",
      {"scenario show pipedream-2bw-gpt-2.2b > my.textproto",
       "scenario show --megatron-args run.args",
       "scenario show llama-3-70b-64-h100 --schedule 1f1b --chunks 1"},
      RunScenarioShow, line);
  AddScenarioName(show, "preset or file; flags override it", &flags->scenario);
  AddImports(show, &flags->scenario);
  AddScenario(show, /*several=*/false, &flags->scenario);
  AddFormat(show, /*csv=*/false, &flags->output);
}

void AddCheckCommands(CLI::App* app, CommandLine* line) {
  AddWeirCommand(app, "doctor",
                 "Shows versions and optional programs found on this machine.",
                 {"doctor"}, RunDoctor, line);
  AddWeirCommand(app, "self-test",
                 "Simulates schedules whose time is known in closed form.",
                 {"self-test"}, RunSelfTest, line);
}

}  // namespace weir::cli
