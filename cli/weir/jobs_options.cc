// SPDX-License-Identifier: Apache-2.0
// "jobs".
#include <string>
#include <vector>

#include "cli/options/add_option.h"
#include "cli/options/shared_options.h"
#include "cli/weir/weir_app.h"

namespace weir::cli {

void AddJobsCommand(CLI::App* app, CommandLine* line) {
  Flags* flags = &line->flags;
  CLI::App* jobs = AddWeirCommand(
      app, "jobs",
      "Simulates several jobs at once, whose transfers share links.",
      {"jobs llama-3-70b-64-h100 llama-3-70b-64-h100"}, RunJobs, line);
  jobs->add_option_function<std::vector<std::string>>(
          "SCENARIO",
          [flags](const std::vector<std::string>& names) {
            flags->jobs.scenarios = names;
          },
          "presets or files of scenarios, one for each job, all with the same "
          "cluster")
      ->required()
      ->type_name("");
  jobs->option_defaults()->group("Jobs");
  AddCount(jobs, "--nodes", "nodes of the cluster", &flags->jobs.num_nodes)
      ->default_str("as many as the jobs need");
  AddOption(jobs, "--first-gpus", "N,N,...",
            "smallest number of a GPU of each job; its others follow as in the "
            "job alone",
            ParseNumbers, &flags->jobs.first_gpus)
      ->default_str(
          "those of parallelism.gpus, else of the node after earlier jobs");
  AddText(jobs, "-o,--out", "FILE.pb", "results of the first step of each job",
          &flags->output.out)
      ->group("Output");
  AddFormat(jobs, /*csv=*/false, &flags->output);
  AddForce(jobs, &flags->output.force);
}

}  // namespace weir::cli
