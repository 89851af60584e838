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
  group.Switch("--slurm", "submit the sweep as a Slurm job array",
               [=](bool on) { sweep->slurm = on; });
  group
      .Count("--slurm-nodes", "tasks of the job array, one per node",
             [=](uint32_t n) { sweep->slurm_nodes = n; })
      .fallback = absl::StrCat(sweep->slurm_nodes);
  group.Text("--slurm-args", "ARGS",
             "extra sbatch arguments: \"--partition=big --time=60\"",
             &sweep->slurm_args);
  group.Switch("--wait", "wait until the job has ended",
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
             "base scenario of all points: preset or file",
             &flags->scenario.scenario);
  group
      .Text("--grid", "FIELD=VALUES",
            "axis of the sweep: comma-separated values, or ranges such as "
            "1..8, 1..9+2, 2..64*2",
            &sweep->grid)
      .repeats = true;
  group.Text("--points", "FILE.csv",
             "points of the sweep: one column per field, one row per point",
             &sweep->points);
  AddMethod("full simulations, or faster ones with the same results", "Sweep",
            &flags->fast, &options);
  group
      .Text("--out", "FOLDER", "folder to which results are appended",
            &sweep->folder)
      .fallback = sweep->folder;
  group
      .Text("--shard", "I/N", "run only points I, I + N, I + 2 N, ...",
            &sweep->shard)
      .fallback = sweep->shard;
  group
      .Seconds("--time-limit",
               "time limit per point; a point that exceeds it fails",
               &sweep->time_limit_seconds)
      .fallback = "none";
  group.Switch("--resume", "continue the sweep in --out",
               [=](bool on) { sweep->resume = on; });
  group
      .Count("--jobs,-j", "points to simulate in parallel",
             [=](uint32_t n) { flags->num_jobs = n; })
      .fallback = "number of cores";
  AddSlurm(&options, sweep);
  AddScenario(&options, &flags->scenario, /*several=*/false);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

Options OptionsOfCollect(Flags* flags) {
  Options options =
      OptionsOfNamed("FOLDER", "folder written by weir sweep --out", flags);
  SweepFlags* sweep = &flags->sweep;
  Group output("Output", &options);
  output.Text("--sqlite", "FILE", "write all points to an SQLite database",
              &sweep->sqlite);
  output.Text("--csv", "FILE", "write all points to a CSV file", &sweep->csv);
  Group("Verdict", &options)
      .Switch("--complete",
              "exit with 1 if points are missing or failed, or if none can run",
              [=](bool on) { sweep->complete = on; });
  AddFormat(&options, &flags->output, /*csv=*/true);
  AddForce(&options, &flags->output);
  AddMessages(&options, &flags->output);
  return options;
}

}  // namespace weir::cli
