// SPDX-License-Identifier: Apache-2.0
// Options of "sweep" and "collect".
#include "absl/strings/str_cat.h"
#include "cli/options/option_group.h"
#include "cli/options/options.h"
#include "cli/options/scenario_options.h"

namespace weir::cli {
namespace {

void AddSlurm(Options* options, SweepFlags* sweep) {
  Group group("Slurm", options);
  group.Switch("--slurm", "hand the sweep in as a job array",
               [=](bool on) { sweep->slurm = on; });
  group
      .Count("--slurm-nodes", "tasks of the array, one a node",
             [=](uint32_t n) { sweep->slurm_nodes = n; })
      .fallback = absl::StrCat(sweep->slurm_nodes);
  group.Text("--slurm-args", "ARGS",
             "further arguments of sbatch: \"--partition=big --time=60\"",
             &sweep->slurm_args);
  group.Switch("--wait", "return when the job has ended",
               [=](bool on) { sweep->wait = on; });
}

}  // namespace

Options OptionsOfSweep(Flags* flags) {
  Options options;
  SweepFlags* sweep = &flags->sweep;
  Group("", &options)
      .Text("SWEEP", "", "textproto file, see docs/sweep.md; flags override it",
            &flags->name);
  Group group("Sweep", &options);
  group.Text("--scenario", "SCENARIO",
             "what every point begins with: preset or file",
             &flags->scenario.scenario);
  group
      .Text("--grid", "FIELD=VALUES",
            "an axis: values with commas between them, ranges as 1..8, 1..9+2, "
            "2..64*2",
            &sweep->grid)
      .repeats = true;
  group.Text("--points", "FILE.csv",
             "points: a column for each field, a row for each point",
             &sweep->points);
  AddMethod("full simulations, or the fast equal of them", "Sweep",
            &flags->fast, &options);
  group.Text("--out", "FOLDER", "where results are appended", &sweep->folder)
      .fallback = sweep->folder;
  group
      .Text("--shard", "I/N", "only points I, I + N, I + 2 N, ...",
            &sweep->shard)
      .fallback = sweep->shard;
  group
      .Seconds("--time-limit",
               "time limit of a point, which then counts as failed",
               &sweep->time_limit_seconds)
      .fallback = "none";
  group.Switch("--resume", "go on with what --out has",
               [=](bool on) { sweep->resume = on; });
  group
      .Count("--jobs,-j", "points at the same time",
             [=](uint32_t n) { flags->num_jobs = n; })
      .fallback = "the machine's cores";
  AddSlurm(&options, sweep);
  AddScenario(&options, &flags->scenario, /*several=*/false);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfCollect(Flags* flags) {
  Options options =
      OptionsOfNamed("FOLDER", "what weir sweep --out wrote", flags);
  SweepFlags* sweep = &flags->sweep;
  Group output("Output", &options);
  output.Text("--sqlite", "FILE", "all points as a database", &sweep->sqlite);
  output.Text("--csv", "FILE", "all points as a table", &sweep->csv);
  Group("Verdict", &options)
      .Switch("--complete",
              "exit 1 when points are missing or have failed, or none can run",
              [=](bool on) { sweep->complete = on; });
  AddFormat(&options, &flags->output, /*csv=*/true);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

}  // namespace weir::cli
